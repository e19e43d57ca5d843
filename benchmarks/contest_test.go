package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

func fixed(name string, log *[]string, figures ...float64) contestant {
	return contestant{name, func(context.Context) (float64, error) {
		*log = append(*log, name)
		x := figures[0]
		figures = figures[1:]
		return x, nil
	}}
}

func TestContestantsTakeTurnsAndRatiosAreOfOneTurn(t *testing.T) {
	var log []string
	p := part{name: "p", target: 0.5, contestants: []contestant{
		fixed("raw", &log, 100, 10, 1000), fixed("reka", &log, 60, 7, 400),
	}}
	o, err := p.hold(t.Context(), 3, time.Now().Add(time.Hour), "")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(log, ","); got != "raw,reka,reka,raw,raw,reka" {
		t.Errorf("order: %s", got)
	}
	if got := o.figure(0); got != 100 {
		t.Errorf("figure: %v, want the median 100", got)
	}
	// 0.6, 0.7 and 0.4; the ratio of the medians would be 0.6 too, that of
	// the sums 0.42.
	if got := o.ratio(1); got != 0.6 {
		t.Errorf("ratio: %v, want 0.6", got)
	}
	if !o.reached() {
		t.Error("target not reached")
	}
	o.atMost = true
	if o.reached() {
		t.Error("0.6 is not at most 0.5")
	}
}

func TestTurnsEndWithTheTimeButNotBeforeTwo(t *testing.T) {
	var log []string
	p := part{name: "p", contestants: []contestant{fixed("raw", &log, 1, 1, 1, 1), fixed("reka", &log, 1, 1, 1, 1)}}
	o, err := p.hold(t.Context(), 4, time.Now().Add(-time.Second), "")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(o.figures[0]); got != minTurns {
		t.Errorf("%d turns, want %d", got, minTurns)
	}
}

func TestTableHasOneLineAPart(t *testing.T) {
	o := outcome{part: part{name: "consume → produce", unit: "records/s", target: 0.6, contestants: []contestant{{name: "raw"}, {name: "franz-go"}, {name: "reka"}}},
		figures: [][]float64{{1_000_000}, {500_000}, {650_000}}}
	var b strings.Builder
	printTable(&b, []outcome{o})
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	const want = "| consume → produce | records/s | 1,000,000 | 500,000  | 650,000 | 65.0 %   | ≥ 60.0 % | reached | 1     |"
	if lines[2] != want {
		t.Errorf("got  %s\nwant %s", lines[2], want)
	}
}

func TestKeysHaveOneLengthAndTheirNumber(t *testing.T) {
	for n, want := range map[uint64]string{0: "key-00000000", 7: "key-00000007", 99_999: "key-00099999", 12_345_678: "key-12345678"} {
		if got := string(appendKey(nil, n)); got != want || len(got) != keyBytes {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestOptionsNameWhatTheyDoNotKnow(t *testing.T) {
	if _, err := parse([]string{"-parts", "consume,pas"}); err == nil || !strings.Contains(err.Error(), `"pas"`) {
		t.Errorf("error: %v", err)
	}
	o, err := parse([]string{"-short"})
	if err != nil || o.limit != 2*time.Minute || o.reps != 3 {
		t.Errorf("short: %+v, %v", o, err)
	}
}
