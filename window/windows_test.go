package window_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/window"
)

const ms = time.Millisecond

// longest is the longest Duration of whole milliseconds.
const longest = time.Duration(math.MaxInt64 / 1_000_000 * 1_000_000)

func TestDeclarationsDescribeThemselves(t *testing.T) {
	for _, x := range []struct {
		ws   window.Windows
		want string
	}{
		{window.Tumbling(5*time.Minute, 10*time.Second), "tumbling 5m, grace 10s"},
		{window.Tumbling(90*time.Minute, window.NoGrace), "tumbling 1h30m, no grace"},
		{window.Hopping(time.Hour, 90*time.Second, time.Minute), "hopping 1h every 1m30s, grace 1m"},
		{window.Sliding(1500*ms, 5*ms), "sliding 1.5s, grace 5ms"},
		{window.Session(30*time.Minute, time.Hour).WithRetention(24 * time.Hour), "session gap 30m, grace 1h, retention 24h"},
		{window.Windows{}, "no windows"},
	} {
		if got := x.ws.String(); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
	one, same, other := window.Tumbling(2*ms, 0), window.Tumbling(2*ms, 0), window.Hopping(2*ms, ms, 0)
	if one != same || one == other {
		t.Error("equal declarations are not equal, or others are")
	}
}

func TestDeclarationsTellTheirTimes(t *testing.T) {
	type times struct {
		kind                                                window.Kind
		size, advance, difference, gap, grace, retain, hold int64
	}
	for _, x := range []struct {
		ws   window.Windows
		want times
	}{
		{window.Tumbling(10*ms, 3*ms), times{kind: window.KindTumbling, size: 10, advance: 10, grace: 3, retain: 13, hold: 13}},
		{window.Hopping(10*ms, 4*ms, 3*ms), times{kind: window.KindHopping, size: 10, advance: 4, grace: 3, retain: 13, hold: 13}},
		{window.Sliding(10*ms, 3*ms), times{kind: window.KindSliding, difference: 10, grace: 3, retain: 23, hold: 14}},
		{window.Session(10*ms, 3*ms), times{kind: window.KindSession, gap: 10, grace: 3, retain: 13, hold: 14}},
		{window.Session(10*ms, 3*ms).WithRetention(20 * ms), times{kind: window.KindSession, gap: 10, grace: 3, retain: 20, hold: 14}},
	} {
		got := times{
			x.ws.Kind(), x.ws.Size(), x.ws.Advance(), x.ws.Difference(), x.ws.Gap(), x.ws.Grace(), x.ws.Retention(), x.ws.Hold(),
		}
		if got != x.want || x.ws.Validate() != nil {
			t.Errorf("%s: %+v, want %+v; %v", x.ws, got, x.want, x.ws.Validate())
		}
	}
}

func TestValidateNamesAllThatIsWrong(t *testing.T) {
	for _, x := range []struct {
		ws   window.Windows
		want string // "": valid
	}{
		{window.Windows{}, "not made by Tumbling"},
		{window.Windows{}.WithRetention(time.Hour), "not made by Tumbling"},
		{window.Tumbling(0, 0), "tumbling: size 0s is not above 0"},
		{window.Tumbling(-ms, -ms), "tumbling: size -1ms is not above 0; grace -1ms is below 0"},
		{window.Tumbling(time.Microsecond, 0), "tumbling: size 1µs is not whole milliseconds"},
		{window.Tumbling(ms, ms+1), "tumbling: grace 1.000001ms is not whole milliseconds"},
		{window.Hopping(ms, 0, 0), "hopping: advance 0s is not above 0"},
		{window.Hopping(ms, 2*ms, 0), "hopping: advance 2ms is above size 1ms"},
		{window.Hopping(2*ms, 2*ms, 0), ""},
		{window.Sliding(-ms, 0), "sliding: difference -1ms is below 0"},
		{window.Sliding(0, 0), ""},
		{window.Session(-ms, 0), "session: gap -1ms is below 0"},
		{window.Session(0, 0), ""},
		{window.Tumbling(longest, longest), ""},
		{window.Tumbling(10*ms, 5*ms).WithRetention(14 * ms), "tumbling: retention 14ms is below size of 10ms + grace of 5ms"},
		{window.Tumbling(10*ms, 5*ms).WithRetention(15 * ms), ""},
		{window.Sliding(10*ms, 5*ms).WithRetention(24 * ms), "sliding: retention 24ms is below twice the difference of 10ms + grace of 5ms"},
		{window.Sliding(10*ms, 5*ms).WithRetention(25 * ms), ""},
		{window.Session(10*ms, 5*ms).WithRetention(14 * ms), "session: retention 14ms is below gap of 10ms + grace of 5ms"},
		{window.Session(10*ms, 5*ms).WithRetention(15*ms + 1), "session: retention 15.000001ms is not whole milliseconds"},
		{window.Session(10*ms, 5*ms).WithRetention(ms).WithRetention(15 * ms), ""},
		{window.Session(10*ms, 5*ms).WithRetention(-ms), "session: retention -1ms is below 0"},
	} {
		err := x.ws.Validate()
		switch {
		case x.want == "":
			if err != nil {
				t.Errorf("%s: %v", x.ws, err)
			}
		case !errors.Is(err, window.ErrInvalid) || !strings.Contains(err.Error(), x.want):
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}

func TestWhatIsInvalidContainsNothing(t *testing.T) {
	for _, ws := range []window.Windows{
		{}, window.Tumbling(0, 0), window.Hopping(10*ms, 0, 0), window.Hopping(10*ms, 20*ms, 0), window.Hopping(0, ms, 0),
		window.Tumbling(10*ms, -ms), window.Hopping(10*ms, -5*ms, 0),
	} {
		if got := each(ws, 25); got != nil {
			t.Errorf("%v contains %v", ws.Validate(), got)
		}
		if got := ws.Pane(25); got != (window.Window{}) {
			t.Errorf("%v has the pane %v", ws.Validate(), got)
		}
		for p := range ws.Panes(window.Window{Start: 0, End: 10}) {
			t.Errorf("%v has the pane %v", ws.Validate(), p)
		}
	}
}
