package view_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/badgerstore"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
	"github.com/rekastream/reka/window"
)

// windowSetup is a view of windows in an instance of a tester, and a topic
// whose rows lie where their inner key says, as a task writes them.
type windowSetup struct {
	t     *testing.T
	tt    *tester.Tester
	table reka.WindowTable[int64]
	app   *tester.Instance
	v     *view.Windows[int64]
	logs  *observer.ObservedLogs
}

const windowPartitions = 3

func newWindowSetup(t *testing.T, ws window.Windows) *windowSetup {
	core, logs := observer.New(zapcore.WarnLevel)
	s := &windowSetup{t: t, table: reka.NewWindowTable("windows", ws, codec.Int64()), logs: logs}
	s.tt = tester.New(t, tester.WithPartitions(windowPartitions), tester.WithLogger(zap.New(core)))
	s.tt.CreateTopic("windows", windowPartitions, "cleanup.policy", "compact")
	return s
}

func (s *windowSetup) start(opts ...view.Option) {
	s.t.Helper()
	s.app = s.tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		v, err := view.NewWindows(i.Client(), s.table, append([]view.Option{view.WithStorage(i.Storage())}, opts...)...)
		s.v = v
		return []reka.Runner{v}, err
	})
}

func (s *windowSetup) put(key string, w window.Window, v int64) {
	s.t.Helper()
	value, err := s.table.Codec().Append(nil, v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.raw(key, w, value)
}

// raw writes a row; without a value a delete.
func (s *windowSetup) raw(key string, w window.Window, value []byte) {
	s.t.Helper()
	home := kafka.Murmur2().Partition([]byte(key), windowPartitions)
	s.tt.SendRaw("windows", home, kafka.Record{Key: s.table.Windows().AppendTopicKey(nil, []byte(key), w), Value: value, Timestamp: w.Start + 1})
}

func (s *windowSetup) at(key string, start, v int64) {
	s.t.Helper()
	s.put(key, s.table.Windows().At(start), v)
}

// got is what a loop yields, as "key[start-end]=value".
func (s *windowSetup) got(rows iter.Seq2[reka.WindowRow[int64], error]) (out []string) {
	s.t.Helper()
	for row, err := range rows {
		if err != nil {
			s.t.Fatal(err)
		}
		if !row.Time.Equal(time.UnixMilli(row.Window.Start + 1)) {
			s.t.Errorf("time of %+v", row)
		}
		out = append(out, fmt.Sprintf("%s[%d-%d]=%d", row.Key, row.Window.Start, row.Window.End, row.Value))
	}
	return out
}

func (s *windowSetup) wantFetch(key string, from, to int64, want ...string) {
	s.t.Helper()
	s.tt.Settle()
	if got := s.got(s.v.Fetch(key, time.UnixMilli(from), time.UnixMilli(to))); !slices.Equal(got, want) {
		s.t.Errorf("%q from %d to %d: %v, want %v", key, from, to, got, want)
	}
	slices.Reverse(want)
	if got := s.got(s.v.Fetch(key, time.UnixMilli(from), time.UnixMilli(to), view.Reverse())); !slices.Equal(got, want) {
		s.t.Errorf("%q from %d to %d, reverse: %v, want %v", key, from, to, got, want)
	}
}

const ten = 10 * time.Millisecond

func TestWindowsOfAKeyBetweenTwoTimes(t *testing.T) {
	s := newWindowSetup(t, window.Tumbling(ten, window.NoGrace))
	for i := range int64(5) {
		s.at("a", i*10, i)
		s.at("b", i*10, 100+i)
	}
	s.start()
	s.wantFetch("a", 10, 30, "a[10-20]=1", "a[20-30]=2", "a[30-40]=3")
	s.wantFetch("a", 11, 29, "a[20-30]=2")
	s.wantFetch("a", 20, 20, "a[20-30]=2")
	s.wantFetch("a", 21, 29)
	s.wantFetch("a", 30, 20)
	s.wantFetch("a", -20, -10)
	s.wantFetch("a", -20, 0, "a[0-10]=0")
	s.wantFetch("c", 0, 100)
	s.wantFetch("b", 40, math.MaxInt64, "b[40-50]=104")

	all := []string{"a[0-10]=0", "a[10-20]=1", "a[20-30]=2", "a[30-40]=3", "a[40-50]=4"}
	if got := s.got(s.v.Fetch("a", time.Time{}, time.Time{})); !slices.Equal(got, all) {
		t.Errorf("without bounds: %v", got)
	}
	within := func(from, to time.Duration) []string {
		return s.got(s.v.Fetch("a", time.Unix(0, int64(from)), time.Unix(0, int64(to))))
	}
	if got := within(ten+1, 2*ten+1); !slices.Equal(got, []string{"a[20-30]=2"}) {
		t.Errorf("times that are no whole milliseconds: %v", got)
	}
	if got := within(ten-1, 2*ten-1); !slices.Equal(got, []string{"a[10-20]=1"}) {
		t.Errorf("times that are no whole milliseconds: %v", got)
	}
	if got := s.got(s.v.All(time.UnixMilli(30), time.UnixMilli(40))); !slices.Equal(got, []string{"a[30-40]=3", "a[40-50]=4", "b[30-40]=103", "b[40-50]=104"}) {
		t.Errorf("All: %v", got)
	}
	if got := s.got(s.v.All(time.UnixMilli(40), time.UnixMilli(30))); got != nil {
		t.Errorf("All of no time: %v", got)
	}

	s.at("a", 20, 7)
	s.raw("a", s.table.Windows().At(10), nil)
	s.wantFetch("a", 10, 20, "a[20-30]=7")
	if st := s.v.Stats(); s.v.State() != view.Ready || !s.v.Ready() || s.v.Lag() != 0 || st.Records != 12 || st.State != view.Ready {
		t.Errorf("state %v, lag %d, %+v", s.v.State(), s.v.Lag(), st)
	}
	if s.logs.Len() != 0 {
		t.Errorf("warned of rows that lie where they belong: %v", s.logs.All())
	}
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	s.app.Restart()
	s.wantFetch("a", 10, 20, "a[20-30]=7")
}

func TestKeysOfDifferentLengthDoNotMix(t *testing.T) {
	s := newWindowSetup(t, window.Tumbling(ten, window.NoGrace))
	// These go on as times of a, of each other, or of the empty key.
	long := string(window.AppendTimeKey(nil, []byte("a"), 20))
	keys := []string{"", "\x00", "a", "a\x00", "a\x00\x00\x00\x00\x00\x00\x00", "a\xff", "aa", long, long + "\x00", long[1:], "\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xff"}
	for i, key := range keys {
		for start := int64(0); start < 50; start += 10 {
			s.at(key, start, int64(i))
		}
	}
	s.start()
	for i, key := range keys {
		var want []string
		for start := 10; start <= 30; start += 10 {
			want = append(want, fmt.Sprintf("%s[%d-%d]=%d", key, start, start+10, i))
		}
		s.wantFetch(key, 10, 30, want...)
	}
	last := map[string]int64{}
	n := 0
	for row, err := range s.v.All(time.Time{}, time.Time{}) {
		if before, seen := last[row.Key]; err != nil || seen && before >= row.Window.Start {
			t.Errorf("%+v after %d, %v", row, before, err)
		}
		last[row.Key] = row.Window.Start
		n++
	}
	if n != 5*len(keys) || len(last) != len(keys) {
		t.Errorf("%d rows of %d keys", n, len(last))
	}
}

func TestHoppingAndSlidingWindowsHaveTheirEnds(t *testing.T) {
	s := newWindowSetup(t, window.Hopping(ten, 4*time.Millisecond, window.NoGrace))
	for _, start := range []int64{0, 4, 8} {
		s.at("a", start, start)
	}
	s.start()
	s.wantFetch("a", 4, 8, "a[4-14]=4", "a[8-18]=8")

	s = newWindowSetup(t, window.Sliding(ten, window.NoGrace))
	for _, start := range []int64{0, 5, 16} {
		s.at("a", start, start)
	}
	s.start()
	s.wantFetch("a", 5, 100, "a[5-15]=5", "a[16-26]=16")
}

func TestSessionsThatOverlapATime(t *testing.T) {
	s := newWindowSetup(t, window.Session(ten, window.NoGrace))
	long := "a" + strings.Repeat("\x00", 7) + "\x30" // goes on as an end of a
	for i, w := range []window.Window{{Start: 0, End: 0}, {Start: 20, End: 30}, {Start: 50, End: 50}, {Start: 70, End: 90}} {
		s.put("a", w, int64(i))
		s.put(long, w, int64(10+i))
	}
	s.start()
	s.wantFetch("a", 0, 100, "a[0-0]=0", "a[20-30]=1", "a[50-50]=2", "a[70-90]=3")
	s.wantFetch("a", 30, 70, "a[20-30]=1", "a[50-50]=2", "a[70-90]=3")
	s.wantFetch("a", 31, 69, "a[50-50]=2")
	s.wantFetch("a", 25, 26, "a[20-30]=1")
	s.wantFetch("a", 75, 80, "a[70-90]=3")
	s.wantFetch("a", 31, 49)
	s.wantFetch("a", 29, 21)
	s.wantFetch(long, 25, 26, long+"[20-30]=11")
	if got := s.got(s.v.All(time.UnixMilli(22), time.UnixMilli(60))); len(got) != 4 {
		t.Errorf("All: %v", got)
	}

	// A record that bridges two.
	s.raw("a", window.Window{Start: 20, End: 30}, nil)
	s.raw("a", window.Window{Start: 50, End: 50}, nil)
	s.put("a", window.Window{Start: 20, End: 50}, 9)
	s.wantFetch("a", 30, 60, "a[20-50]=9")
}

func TestWindowRowsThatCannotBeDecoded(t *testing.T) {
	prepare := func(ws window.Windows) *windowSetup {
		s := newWindowSetup(t, ws)
		s.at("a", 10, 1)
		s.raw("a", ws.At(20), []byte("short"))
		s.at("a", 30, 3)
		s.tt.SendRaw("windows", 0, kafka.Record{Key: []byte("bare"), Value: make([]byte, 8), Timestamp: 5})
		return s
	}
	ws := window.Tumbling(ten, window.NoGrace)
	s := prepare(ws)
	s.start()
	s.tt.Settle()
	var got []string
	for row, err := range s.v.Fetch("a", time.Time{}, time.Time{}) {
		got = append(got, fmt.Sprint(row.Key, row.Window.Start, " ", errors.Is(err, view.ErrUndecodable)))
	}
	if want := []string{"a10 false", "a20 true", "a30 false"}; !slices.Equal(got, want) {
		t.Errorf("Fetch: %v, want %v", got, want)
	}
	bad := 0
	for row, err := range s.v.All(time.UnixMilli(30), time.Time{}) {
		var placed *kafka.Error
		switch {
		case row.Key == "bare":
			if !errors.Is(err, window.ErrKey) || !errors.As(err, &placed) || placed.Topic != "windows" || string(placed.Key) != "bare" {
				t.Errorf("All: %v", err)
			}
			bad++
		case err != nil || row.Value != 3:
			t.Errorf("All: %+v, %v", row, err)
		}
	}
	if bad != 1 {
		t.Errorf("a key of no window was yielded %d times", bad)
	}

	s = prepare(ws)
	s.start(view.WithDecodePolicy(view.SkipAndCount))
	s.wantFetch("a", 0, 100, "a[10-20]=1", "a[30-40]=3")
	if rows, n := s.got(s.v.All(time.Time{}, time.Time{})), s.v.Stats().Skipped; len(rows) != 2 || n != 2 {
		t.Errorf("rows %v, %d skipped", rows, n)
	}

	s = newWindowSetup(t, window.Session(ten, window.NoGrace))
	s.put("a", window.Window{Start: 20, End: 10}, 1)
	s.start()
	s.tt.Settle()
	n := 0
	for _, err := range s.v.Fetch("a", time.Time{}, time.Time{}) {
		if n++; !errors.Is(err, view.ErrUndecodable) || !errors.Is(err, window.ErrKey) {
			t.Errorf("a session that ends before it starts: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestWindowsThatAreNotReadySaySo(t *testing.T) {
	table := reka.NewWindowTable("windows", window.Tumbling(ten, 0), codec.Int64())
	v, err := view.NewWindows(tester.New(t).Client(), table, view.WithStorage(storage.Memory()))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, rows := range []iter.Seq2[reka.WindowRow[int64], error]{
		v.Fetch("a", time.Time{}, time.Time{}), v.All(time.Time{}, time.Time{}), v.Fetch("a", time.UnixMilli(5), time.UnixMilli(4)),
	} {
		for row, err := range rows {
			if n++; !errors.Is(err, view.ErrNotReady) {
				t.Errorf("%+v, %v", row, err)
			}
		}
	}
	if n != 3 || v.Ready() || v.State() != view.Idle {
		t.Errorf("%d errors, ready %v, state %v", n, v.Ready(), v.State())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.WaitReady(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitReady: %v", err)
	}
}

func TestNewWindowsNamesWhatIsWrong(t *testing.T) {
	c, st, ws := tester.New(t).Client(), view.WithStorage(storage.Memory()), window.Tumbling(ten, 0)
	good := reka.NewWindowTable("windows", ws, codec.Int64())
	for _, x := range []struct {
		want  string
		opts  []view.Option
		table reka.WindowTable[int64]
	}{
		{"WithStorage", nil, good},
		{"NewWindowTable", []view.Option{st}, reka.WindowTable[int64]{}},
		{"NewWindowTable", []view.Option{st}, reka.NewWindowTable[int64]("windows", ws, nil)},
		{"table windows: invalid windows: tumbling: size 0s", []view.Option{st}, reka.NewWindowTable("windows", window.Tumbling(0, 0), codec.Int64())},
		{"table windows: invalid windows: not made by", []view.Option{st}, reka.NewWindowTable("windows", window.Windows{}, codec.Int64())},
		{"WithObserver", []view.Option{st, view.WithObserver(func(view.Change[int64]) {})}, good},
	} {
		if _, err := view.NewWindows(c, x.table, x.opts...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("error %v does not name %s", err, x.want)
		}
	}
	if _, err := view.NewWindows[int64](nil, good, st); err == nil {
		t.Error("no client: no error")
	}
}

func TestWindowsThatAreRunTwiceAreRefused(t *testing.T) {
	s := newWindowSetup(t, window.Tumbling(ten, 0))
	s.start()
	s.tt.Settle()
	if err := s.v.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "was run before") {
		t.Errorf("Run: %v", err)
	}
}

func TestWindowsAreReadFromBadger(t *testing.T) {
	dir := badgerstore.In(t.TempDir()) // first, so that it goes last
	s := newWindowSetup(t, window.Session(ten, window.NoGrace))
	keys := []string{"", "a", "a\x00", strings.Repeat("long", 20_000)}
	put := func(i int64) {
		for _, key := range keys {
			s.put(key, window.Window{Start: i * 100, End: i*100 + 5}, i)
		}
	}
	for i := range int64(3) {
		put(i)
	}
	s.tt.Start("app", func(i *tester.Instance) (_ []reka.Runner, err error) {
		s.v, err = view.NewWindows(i.Client(), s.table, view.WithStorage(i.Guard(dir)), view.WithFlush(1, time.Hour))
		return []reka.Runner{s.v}, err
	})
	s.tt.Settle()
	put(3)
	for _, key := range keys {
		s.wantFetch(key, 105, 300, key+"[100-105]=1", key+"[200-205]=2", key+"[300-305]=3")
		s.wantFetch(key, 300, 105)
		s.wantFetch(key, 206, 299)
	}
}
