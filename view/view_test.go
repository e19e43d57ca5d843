package view_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
)

var counts = reka.NewTable("counts", codec.Int64())

// setup is a view in an instance of a tester, with the table's topic.
type setup struct {
	t   *testing.T
	tt  *tester.Tester
	in  *tester.InputTopic[int64]
	app *tester.Instance
	v   *view.View[int64]
}

func newSetup(t *testing.T, partitions int32, opts ...tester.Option) *setup {
	opts = append([]tester.Option{tester.WithPartitions(partitions), tester.WithLogger(zap.NewNop())}, opts...)
	s := &setup{t: t, tt: tester.New(t, opts...)}
	s.in = tester.Input(s.tt, counts)
	return s
}

func (s *setup) start(opts ...view.Option) {
	s.t.Helper()
	s.app = s.tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		v, err := view.New(i.Client(), counts, append([]view.Option{view.WithStorage(i.Storage())}, opts...)...)
		s.v = v
		return []reka.Runner{v}, err
	})
}

func (s *setup) want(key string, want int64) {
	s.t.Helper()
	s.tt.Settle()
	if got, ok, err := s.v.Get(key); got != want || !ok || err != nil {
		s.t.Errorf("Get(%s) = %d, %v, %v; want %d", key, got, ok, err, want)
	}
}

func collect(t *testing.T, rows func(func(reka.Row[int64], error) bool)) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		out[row.Key] = row.Value
	}
	return out
}

func TestReadsOfAView(t *testing.T) {
	s := newSetup(t, 4)
	for i := range 100 {
		s.in.Send(fmt.Sprintf("k%02d", i), int64(i), reka.At(time.UnixMilli(int64(1000+i))))
	}
	s.start()
	s.want("k42", 42)
	if row, ok, err := s.v.GetRow("k42"); !ok || err != nil || !row.Time.Equal(time.UnixMilli(1042)) {
		t.Errorf("GetRow: %+v, %v, %v", row, ok, err)
	}
	if _, ok, err := s.v.Get("nobody"); ok || err != nil {
		t.Errorf("Get of no row: %v, %v", ok, err)
	}
	if has, err := s.v.Has("k99"); !has || err != nil {
		t.Errorf("Has: %v, %v", has, err)
	}
	keys := func(rows func(func(reka.Row[int64], error) bool)) (out []string) {
		for row, err := range rows {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, row.Key)
		}
		return out
	}
	if got := keys(s.v.Range("k10", "k13")); !slices.Equal(got, []string{"k10", "k11", "k12"}) {
		t.Errorf("Range: %v", got)
	}
	if got := keys(s.v.Range("k98", "")); !slices.Equal(got, []string{"k98", "k99"}) {
		t.Errorf("Range without end: %v", got)
	}
	if got := keys(s.v.Prefix("k9", view.Reverse())); len(got) != 10 || got[0] != "k99" || got[9] != "k90" {
		t.Errorf("Prefix, reverse: %v", got)
	}
	if got := keys(s.v.All()); len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("All: %d keys", len(got))
	}
	s.in.Delete("k42")
	s.in.Send("k43", 1)
	s.want("k43", 1)
	if has, err := s.v.Has("k42"); has || err != nil {
		t.Errorf("Has of a deleted row: %v, %v", has, err)
	}
	if s.v.State() != view.Ready || s.v.Lag() != 0 {
		t.Errorf("state %v, lag %d", s.v.State(), s.v.Lag())
	}
	if st := s.v.Stats(); len(st.Partitions) != 4 || st.Records != 102 {
		t.Errorf("stats %+v", st)
	}
}

func TestConstructorNamesWhatIsWrong(t *testing.T) {
	c := tester.New(t).Client()
	st := view.WithStorage(storage.Memory())
	for _, x := range []struct {
		want  string
		opts  []view.Option
		table reka.Table[int64]
	}{
		{"WithStorage", nil, counts},
		{"WithStorage(nil)", []view.Option{view.WithStorage(nil)}, counts},
		{"nil option", []view.Option{st, nil}, counts},
		{"WithCacheBytes(-1)", []view.Option{st, view.WithCacheBytes(-1)}, counts},
		{"WithFlush(0", []view.Option{st, view.WithFlush(0, time.Second)}, counts},
		{"WithStopTimeout(0s)", []view.Option{st, view.WithStopTimeout(0)}, counts},
		{"WithDecodePolicy(9)", []view.Option{st, view.WithDecodePolicy(9)}, counts},
		{"WithObserver", []view.Option{st, view.WithObserver(func(view.Change[string]) {})}, counts},
		{"table", []view.Option{st}, reka.Table[int64]{}},
	} {
		if _, err := view.New(c, x.table, x.opts...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("error %v does not name %s", err, x.want)
		}
	}
	if _, err := view.New[int64](nil, counts, st); err == nil {
		t.Error("no client: no error")
	}
}

func TestNotReadyIsNotNotFound(t *testing.T) {
	c := tester.New(t).Client()
	v, err := view.New(c, counts, view.WithStorage(storage.Memory()))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.Get("a"); !errors.Is(err, view.ErrNotReady) {
		t.Errorf("Get: %v", err)
	}
	if _, err := v.Has("a"); !errors.Is(err, view.ErrNotReady) {
		t.Errorf("Has: %v", err)
	}
	for _, err := range v.All() {
		if !errors.Is(err, view.ErrNotReady) {
			t.Errorf("All: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.WaitReady(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitReady: %v", err)
	}
	if v.Ready() || v.State() != view.Idle {
		t.Errorf("ready %v, state %v", v.Ready(), v.State())
	}
}

func sendGarbage(s *setup) {
	s.in.Send("k1", 1)
	s.in.Send("k2", 2)
	s.tt.SendRaw("counts", 0, kafka.Record{Key: []byte("k2"), Value: []byte{0xff}, Timestamp: 5})
}

func TestUndecodableRowFailsItsReadOnly(t *testing.T) {
	s := newSetup(t, 1)
	sendGarbage(s)
	s.start()
	s.want("k1", 1)
	var placed *kafka.Error
	_, _, err := s.v.Get("k2")
	if !errors.Is(err, view.ErrUndecodable) || !errors.As(err, &placed) || placed.Topic != "counts" || string(placed.Key) != "k2" {
		t.Errorf("Get: %v", err)
	}
	if has, err := s.v.Has("k2"); !has || err != nil {
		t.Errorf("Has: %v, %v", has, err)
	}
	n := 0
	for row, err := range s.v.All() {
		if bad := row.Key == "k2"; bad != errors.Is(err, view.ErrUndecodable) {
			t.Errorf("%s: %v", row.Key, err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d rows", n)
	}
}

func TestUndecodableRowIsSkippedAlikeLiveAndAfterRestart(t *testing.T) {
	s := newSetup(t, 1)
	s.start(view.WithDecodePolicy(view.SkipAndCount))
	sendGarbage(s) // live
	check := func(what string, skipped int64) {
		t.Helper()
		s.want("k1", 1)
		if _, ok, err := s.v.Get("k2"); ok || err != nil {
			t.Errorf("%s: Get(k2): %v, %v", what, ok, err)
		}
		if got := collect(t, s.v.All()); !maps.Equal(got, map[string]int64{"k1": 1}) {
			t.Errorf("%s: rows %v", what, got)
		}
		if n := s.v.Stats().Skipped; n != skipped {
			t.Errorf("%s: %d skipped, want %d", what, n, skipped)
		}
	}
	check("live", 1)
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	s.app.Restart()
	check("resumed", 0)
	s.app.Crash()
	s.tt.Start("fresh", func(i *tester.Instance) ([]reka.Runner, error) { // as after a wiped disk
		v, err := view.New(i.Client(), counts, view.WithStorage(i.Storage()), view.WithDecodePolicy(view.SkipAndCount))
		s.v = v
		return []reka.Runner{v}, err
	})
	check("wiped", 1)
}

func TestStatesWhenTheBrokersGoAndComeBack(t *testing.T) {
	s := newSetup(t, 2)
	s.in.Send("a", 1)
	var states []view.State
	s.start(view.WithStateObserver(func(st view.State) { states = append(states, st) }))
	s.want("a", 1)
	away := func(do tester.Action) {
		for _, op := range []tester.Op{tester.OpTopics, tester.OpOffsets, tester.OpFetch} {
			s.tt.Fail(tester.Fault{Op: op, Instance: "app", Do: do})
		}
	}
	away(tester.Delay(30 * time.Second))
	for range 25 {
		s.tt.Advance(time.Second)
		s.want("a", 1)
	}
	if s.v.State() != view.Connecting || !s.v.Ready() {
		t.Errorf("state %v, ready %v", s.v.State(), s.v.Ready())
	}
	s.in.Send("a", 2)
	s.tt.Advance(time.Minute)
	s.tt.Advance(time.Minute)
	s.want("a", 2)
	want := []view.State{view.Connecting, view.Restoring, view.Ready, view.Connecting, view.Ready}
	if !slices.Equal(states, want) || s.v.State() != view.Ready {
		t.Errorf("states %v, want %v", states, want)
	}
}

func TestCrashesWhileRowsAreWrittenLoseNothing(t *testing.T) {
	for n := 1; n <= 20; n++ {
		s := newSetup(t, 2)
		do := []tester.Action{tester.CrashBefore, tester.CrashWithin, tester.CrashAfter}[n%3]
		s.tt.Fail(tester.Fault{Op: tester.OpApply, Instance: "app", Nth: n, Do: do})
		s.start(view.WithFlush(1, time.Hour))
		crashes := 0
		for i := range 1000 {
			key := fmt.Sprint("k", i*31%97)
			if i%7 == 0 {
				s.in.Delete(key)
			} else {
				s.in.Send(key, int64(i))
			}
			if i%20 == 0 {
				s.tt.Settle()
			}
			if s.app.Crashed() {
				crashes++
				s.app.Restart()
			}
		}
		if crashes != 1 {
			t.Errorf("%d crashes", crashes)
		}
		s.tt.Settle()
		if got, want := collect(t, s.v.All()), tester.Table(s.tt, counts).All(); !maps.Equal(got, want) {
			t.Errorf("crash at write %d: %d rows differ from the log's %d", n, len(got), len(want))
		}
	}
}

func TestTableThatEndsInControlRecordsIsReady(t *testing.T) {
	s := newSetup(t, 1)
	s.in.Send("a", 1)
	s.tt.WriteControl("counts", 0)
	s.tt.WriteControl("counts", 0)
	s.start()
	s.want("a", 1)
	if s.v.State() != view.Ready || s.v.Lag() != 0 {
		t.Errorf("state %v, lag %d", s.v.State(), s.v.Lag())
	}
}

func TestSecondViewOfATableOnOneStorageIsRefused(t *testing.T) {
	s := newSetup(t, 1)
	s.start()
	v, err := view.New(s.app.Client(), counts, view.WithStorage(s.app.Storage()))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Run(t.Context()); !errors.Is(err, storage.ErrBusy) || !strings.Contains(err.Error(), "counts") {
		t.Errorf("Run of a second view: %v", err)
	}
}

func TestObserverSeesEveryChangeInOrder(t *testing.T) {
	s := newSetup(t, 1)
	s.in.Send("a", 1)
	var seen []string
	s.start(view.WithObserver(func(c view.Change[int64]) {
		switch {
		case c.Err != nil:
			seen = append(seen, c.Row.Key+" bad")
		case c.Deleted:
			seen = append(seen, c.Row.Key+" deleted")
		default:
			seen = append(seen, fmt.Sprintf("%s%d %v", c.Row.Key, c.Row.Value, c.Restoring))
		}
	}))
	s.tt.Settle()
	s.in.Send("a", 2)
	s.in.Delete("a")
	s.tt.SendRaw("counts", 0, kafka.Record{Key: []byte("b"), Value: []byte("x"), Timestamp: 1})
	s.tt.Settle()
	if want := []string{"a1 true", "a2 false", "a deleted", "b bad"}; !slices.Equal(seen, want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
}

func TestBigRecordIsReadAndServed(t *testing.T) {
	big := reka.NewTable("big", codec.Bytes())
	tt := tester.New(t, tester.WithPartitions(1), tester.WithLogger(zap.NewNop()))
	tt.CreateTopic("big", 1, "cleanup.policy", "compact", "max.message.bytes", "8388608")
	tester.Input(tt, big).Send("a", make([]byte, 4<<20))
	tester.Input(tt, big).Send("b", []byte("small"))
	var v *view.View[[]byte]
	tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		v, err = view.New(i.Client(), big, view.WithStorage(i.Storage()))
		return []reka.Runner{v}, err
	})
	if got, _, err := v.Get("a"); len(got) != 4<<20 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, _, err := v.Get("b"); string(got) != "small" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestGetOfARowInMemoryAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	s := newSetup(t, 3)
	s.in.Send("a", 1)
	s.start()
	s.want("a", 1)
	if n := testing.AllocsPerRun(1000, func() {
		if _, ok, err := s.v.Get("a"); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
