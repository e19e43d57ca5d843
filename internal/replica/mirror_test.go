package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest/observer"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// mirrorTest runs Mirrors over a fakeKafka, inside a synctest bubble.
type mirrorTest struct {
	t       *testing.T
	k       *fakeKafka
	builder storage.Builder
	opts    []kafka.Option
	logs    *observer.ObservedLogs

	*Mirror
	cancel context.CancelFunc
	done   chan error

	mu     sync.Mutex
	states []MirrorState
}

func inBubble(t *testing.T, partitions int, f func(*mirrorTest)) {
	synctest.Test(t, func(t *testing.T) {
		x := &mirrorTest{t: t, k: newFakeKafka(), builder: storage.Memory()}
		if partitions > 0 {
			x.k.create("t", partitions)
		}
		f(x)
		if x.cancel != nil {
			x.stop()
		}
	})
}

func (x *mirrorTest) start(change ...func(*MirrorConfig)) {
	x.t.Helper()
	log, logs := warnings()
	x.logs = logs
	x.states = nil
	cfg := MirrorConfig{Client: x.k.client(x.t, x.opts...), Topic: "t", Store: x.builder, Log: log}
	cfg.OnState = func(s MirrorState) {
		x.mu.Lock()
		x.states = append(x.states, s)
		x.mu.Unlock()
	}
	for _, f := range change {
		f(&cfg)
	}
	m, err := NewMirror(cfg)
	if err != nil {
		x.t.Fatal(err)
	}
	x.Mirror = m
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	x.cancel, x.done = cancel, done
	go func() { done <- m.Run(ctx) }() // ends with stop
}

func (x *mirrorTest) stop() {
	x.t.Helper()
	x.cancel()
	x.cancel = nil
	if err := <-x.done; err != nil {
		x.t.Errorf("Run: %v", err)
	}
}

func (x *mirrorTest) ready() {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := x.WaitReady(ctx); err != nil {
		x.t.Fatalf("never ready: %v", err)
	}
}

func (x *mirrorTest) wantGet(key, want string) {
	x.t.Helper()
	v, _, ok, err := x.Get(nil, []byte(key), false)
	if got := string(v); err != nil || ok != (want != "") || got != want {
		x.t.Errorf("Get(%s) = %q, %v, %v; want %q", key, got, ok, err, want)
	}
}

func (x *mirrorTest) eventuallyGet(key, want string) {
	x.t.Helper()
	eventually(x.t, key+" = "+want, func() bool {
		v, _, _, err := x.Get(nil, []byte(key), false)
		return err == nil && string(v) == want
	})
}

func (x *mirrorTest) keys(r storage.Range) (keys []string) {
	x.t.Helper()
	for row, err := range x.Scan(r, false) {
		if err != nil {
			x.t.Fatal(err)
		}
		keys = append(keys, string(row.Key))
	}
	return keys
}

func (x *mirrorTest) wantStates(want ...MirrorState) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.Equal(x.states, want) {
		x.t.Errorf("states %v, want %v", x.states, want)
	}
	if x.State() != want[len(want)-1] {
		x.t.Errorf("state is %v, observed last was %v", x.State(), want[len(want)-1])
	}
}

func (x *mirrorTest) fill(n int) {
	for i := range n {
		x.k.put("t", fmt.Sprintf("k%03d", i), fmt.Sprint(i))
	}
}

func TestMirrorMergesItsPartitionsInOrder(t *testing.T) {
	inBubble(t, 5, func(x *mirrorTest) {
		x.fill(300)
		x.start()
		x.ready()
		got := x.keys(storage.Range{})
		if len(got) != 300 || !slices.IsSorted(got) {
			t.Errorf("%d keys, sorted %v", len(got), slices.IsSorted(got))
		}
		if got := x.keys(storage.Range{From: []byte("k010"), To: []byte("k013")}); !slices.Equal(got, []string{"k010", "k011", "k012"}) {
			t.Errorf("range: %v", got)
		}
		r := storage.Prefix([]byte("k29"))
		r.Reverse = true
		if got := x.keys(r); len(got) != 10 || got[0] != "k299" || got[9] != "k290" {
			t.Errorf("reverse prefix: %v", got)
		}
		x.wantGet("k123", "123")
		x.wantGet("nobody", "")
		x.k.put("t", "k123", "new")
		x.eventuallyGet("k123", "new")
		x.wantStates(MirrorConnecting, MirrorRestoring, MirrorReady)
	})
}

func TestMirrorOfAnEmptyTopicIsReady(t *testing.T) {
	inBubble(t, 3, func(x *mirrorTest) {
		x.start()
		x.ready()
		x.wantGet("a", "")
		x.wantStates(MirrorConnecting, MirrorReady)
	})
}

func TestMirrorAnswersWhileTheBrokersAreAway(t *testing.T) {
	inBubble(t, 1, func(x *mirrorTest) {
		x.k.put("t", "a", "1")
		x.start()
		x.ready()
		x.k.setDown(true)
		for range 30 {
			time.Sleep(time.Second)
			x.wantGet("a", "1")
			if got := x.keys(storage.Range{}); !slices.Equal(got, []string{"a"}) {
				t.Fatalf("scan: %v", got)
			}
		}
		x.wantStates(MirrorConnecting, MirrorRestoring, MirrorReady, MirrorConnecting)
		x.k.setDown(false)
		x.k.put("t", "a", "2")
		x.eventuallyGet("a", "2")
		time.Sleep(10 * time.Second)
		x.wantStates(MirrorConnecting, MirrorRestoring, MirrorReady, MirrorConnecting, MirrorReady)
	})
}

func TestMirrorStartedWithoutBrokers(t *testing.T) {
	for _, localFirst := range []bool{false, true} {
		inBubble(t, 3, func(x *mirrorTest) {
			x.fill(100)
			x.start()
			x.ready()
			x.stop()
			x.k.setDown(true)
			x.start(func(c *MirrorConfig) { c.LocalFirst = localFirst })
			time.Sleep(20 * time.Second)
			_, _, ok, err := x.Get(nil, []byte("k042"), false)
			if localFirst && (!ok || err != nil) || !localFirst && !errors.Is(err, ErrNotReady) {
				t.Errorf("local first %v: %v, %v", localFirst, ok, err)
			}
			if _, _, ok, err := x.Get(nil, []byte("k042"), true); !ok || err != nil {
				t.Errorf("stale read: %v, %v", ok, err)
			}
			if x.Ready() != localFirst {
				t.Errorf("ready is %v", x.Ready())
			}
			x.wantStates(MirrorConnecting)
			before := x.k.fetches()
			x.k.setDown(false)
			x.ready()
			eventually(t, "ready", func() bool { return x.State() == MirrorReady })
			x.wantGet("k042", "42")
			if n := x.k.fetches() - before; n != 0 {
				t.Errorf("%d records were read again", n)
			}
		})
	}
}

func TestHalfRestoredCopyIsNotReadFirst(t *testing.T) {
	inBubble(t, 1, func(x *mirrorTest) {
		x.fill(10)
		x.k.change(func() { x.k.limit = 5 })
		x.start()
		time.Sleep(time.Second)
		x.wantStates(MirrorConnecting, MirrorRestoring)
		x.stop()
		x.k.setDown(true)
		x.start(func(c *MirrorConfig) { c.LocalFirst = true })
		time.Sleep(time.Second)
		if _, _, _, err := x.Get(nil, []byte("k001"), false); !errors.Is(err, ErrNotReady) {
			t.Errorf("a copy that never was complete is read: %v", err)
		}
		x.k.change(func() { x.k.limit, x.k.down = 0, false })
		x.ready()
		x.wantGet("k009", "9")
	})
}

func TestKeysPlacedByAnotherPartitionerAreFoundAndReported(t *testing.T) {
	inBubble(t, 10, func(x *mirrorTest) {
		x.opts = []kafka.Option{kafka.WithPartitioner(kafka.FNV1a())}
		x.k.write("t", 8, "user-1", []byte("x")) // where Java puts it; FNV-1a says 6
		x.start()
		x.ready()
		x.wantGet("user-1", "x")
		x.wantGet("user-2", "")
		if x.logs.Len() != 1 {
			t.Errorf("%d warnings, want one", x.logs.Len())
		}
		x.stop()
		x.start() // what was found out is remembered
		x.ready()
		x.wantGet("user-1", "x")
		x.stop()

		x.opts = nil
		x.builder = storage.Memory()
		x.start()
		x.ready()
		x.wantGet("user-1", "x")
		if x.logs.Len() != 0 || x.misplaced.Load() {
			t.Errorf("warned although the partitioner fits: %v", x.logs.All())
		}
	})
}

func TestMirrorWaitsForAMissingTopic(t *testing.T) {
	inBubble(t, 0, func(x *mirrorTest) {
		x.start()
		time.Sleep(5 * time.Minute)
		if n := x.logs.Len(); n == 0 || n > 6 {
			t.Errorf("%d warnings in 5 minutes", n)
		}
		if _, _, _, err := x.Get(nil, []byte("a"), false); !errors.Is(err, ErrNotReady) {
			t.Errorf("Get: %v", err)
		}
		x.k.create("t", 2)
		x.k.put("t", "a", "1")
		x.ready()
		x.wantGet("a", "1")
	})
}

func TestMissingTopicEndsRunWhereWanted(t *testing.T) {
	inBubble(t, 0, func(x *mirrorTest) {
		x.start(func(c *MirrorConfig) { c.MissingTopic = 10 * time.Second })
		if err := <-x.done; !errors.Is(err, kafka.ErrUnknownTopic) {
			t.Errorf("Run: %v", err)
		}
		x.cancel()
		x.cancel = nil
		if err := x.WaitReady(x.t.Context()); !errors.Is(err, kafka.ErrUnknownTopic) {
			t.Errorf("WaitReady: %v", err)
		}
	})
}

func TestTopicDeletedAndCreatedAgainIsBuiltAnew(t *testing.T) {
	inBubble(t, 3, func(x *mirrorTest) {
		x.fill(50)
		x.start()
		x.ready()
		x.k.change(func() { delete(x.k.topics, "t") })
		time.Sleep(time.Minute)
		x.wantGet("k007", "7")
		x.k.create("t", 2)
		x.k.put("t", "new", "1")
		x.eventuallyGet("new", "1")
		if got := x.keys(storage.Range{}); !slices.Equal(got, []string{"new"}) {
			t.Errorf("rows %v", got)
		}
		eventually(t, "ready", func() bool { return x.State() == MirrorReady })
		x.stop()
		x.start(func(c *MirrorConfig) { c.LocalFirst = true })
		x.ready()
		x.wantGet("new", "1")
		x.wantGet("k007", "")
	})
}

func TestTopicThatGrowsIsFollowed(t *testing.T) {
	inBubble(t, 2, func(x *mirrorTest) {
		x.fill(50)
		x.start()
		x.ready()
		x.k.change(func() {
			top := x.k.topics["t"]
			top.parts = append(top.parts, &fakeLog{stable: -1}, &fakeLog{stable: -1}, &fakeLog{stable: -1})
		})
		for i := range 20 {
			x.k.put("t", fmt.Sprint("new", i), "1")
		}
		for i := range 20 {
			x.eventuallyGet(fmt.Sprint("new", i), "1")
		}
		for i := range 50 {
			x.wantGet(fmt.Sprintf("k%03d", i), fmt.Sprint(i)) // they stay where they were
		}
	})
}

func TestLogShortenedBeyondALiveMirrorIsBuiltAnew(t *testing.T) {
	inBubble(t, 1, func(x *mirrorTest) {
		x.fill(10)
		x.start()
		x.ready()
		x.k.setDown(true)
		time.Sleep(time.Second)
		x.k.put("t", "lost", "1")
		x.k.put("t", "kept", "1")
		x.k.trim("t", 0, 11)
		x.k.setDown(false)
		x.eventuallyGet("kept", "1")
		if got := x.keys(storage.Range{}); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("rows %v", got)
		}
		if p := x.Stats()[0]; p.Rebuilds != 1 {
			t.Errorf("%d rebuilds", p.Rebuilds)
		}
	})
}

func TestSecondMirrorOfATableOnOneStorageIsRefused(t *testing.T) {
	inBubble(t, 1, func(x *mirrorTest) {
		x.start()
		x.ready()
		m, err := NewMirror(MirrorConfig{Client: x.k.client(t), Topic: "t", Store: x.builder})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Run(x.t.Context()); !errors.Is(err, storage.ErrBusy) {
			t.Errorf("second Run: %v", err)
		}
		if err := x.Run(x.t.Context()); !errors.Is(err, ErrRunTwice) {
			t.Errorf("Run again: %v", err)
		}
		x.wantGet("a", "")
	})
}

func TestRefusedRightsEndTheMirror(t *testing.T) {
	inBubble(t, 1, func(x *mirrorTest) {
		x.start(func(c *MirrorConfig) {
			d := refusingDriver{x.k}
			c.Client, _ = kafka.NewDriverClient(d)
		})
		if err := <-x.done; !errors.Is(err, kafka.ErrNotAuthorized) {
			t.Errorf("Run: %v", err)
		}
		x.cancel()
		x.cancel = nil
	})
}

type refusingDriver struct{ *fakeKafka }

func (d refusingDriver) Admin() kafka.Admin { return refusingAdmin{} }

type refusingAdmin struct{ kafka.Admin }

func (refusingAdmin) Topics(context.Context, ...string) (map[string]kafka.Topic, error) {
	return nil, kafka.ErrNotAuthorized
}

func TestLagFollowsTheEndOfTheLog(t *testing.T) {
	inBubble(t, 1, func(x *mirrorTest) {
		x.fill(10)
		x.start()
		x.ready()
		time.Sleep(5 * time.Second)
		if p := x.Stats()[0]; p.Lag() != 0 || p.Position != 10 {
			t.Errorf("%+v", p)
		}
	})
}

func TestMirrorOfManyUpdatesEqualsTheLog(t *testing.T) {
	inBubble(t, 4, func(x *mirrorTest) {
		x.start(func(c *MirrorConfig) { c.FlushBytes = 1 << 10 })
		want := map[string]string{}
		for i := range 5000 {
			key := fmt.Sprintf("k%03d", i*7919%400)
			if i%5 == 0 {
				x.k.write("t", kafka.Murmur2().Partition([]byte(key), 4), key, nil)
				delete(want, key)
				continue
			}
			x.k.put("t", key, fmt.Sprint(i))
			want[key] = fmt.Sprint(i)
		}
		x.ready()
		check := func() {
			t.Helper()
			got := map[string]string{}
			for row, err := range x.Scan(storage.Range{}, false) {
				if err != nil {
					t.Fatal(err)
				}
				got[string(row.Key)] = string(row.Value)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%d rows differ from the log's %d", len(got), len(want))
			}
		}
		eventually(t, "no lag", func() bool {
			n := int64(0)
			for _, p := range x.Stats() {
				n += p.Position
			}
			return n == 5000
		})
		check()
		x.stop()
		x.start()
		x.ready()
		check()
	})
}

func TestScanEndsWhenRunEnds(t *testing.T) {
	inBubble(t, 2, func(x *mirrorTest) {
		x.fill(100)
		x.start()
		x.ready()
		n := 0
		var last error
		for _, err := range x.Scan(storage.Range{}, false) {
			if n++; n == 10 {
				x.cancel()
				time.Sleep(time.Second)
				if len(x.done) > 0 {
					t.Error("the store was closed under a snapshot")
				}
			}
			last = err
		}
		if n != 11 || !errors.Is(last, ErrNotReady) {
			t.Errorf("%d rows, then %v", n, last)
		}
	})
}

func TestEmptyPartitionsAreReadFirstToo(t *testing.T) {
	inBubble(t, 5, func(x *mirrorTest) {
		x.k.put("t", "a", "1")
		x.start()
		x.ready()
		x.stop()
		x.k.setDown(true)
		x.start(func(c *MirrorConfig) { c.LocalFirst = true })
		time.Sleep(time.Second)
		x.wantGet("a", "1")
		x.wantGet("b", "")
	})
}

func TestReadsAreRefusedWhileTheCopyIsBuiltAnew(t *testing.T) {
	inBubble(t, 2, func(x *mirrorTest) {
		x.fill(100)
		x.start()
		x.ready()
		x.k.setDown(true)
		time.Sleep(time.Second)
		x.fill(100)
		end := x.k.log("t", 0).end
		x.k.change(func() { x.k.limit = end - 5 })
		x.k.trim("t", 0, end-10)
		x.k.setDown(false)
		time.Sleep(time.Minute)
		for _, key := range []string{"k001", "k002", "k003", "k004"} {
			if _, _, _, err := x.Get(nil, []byte(key), false); !errors.Is(err, ErrNotReady) {
				t.Errorf("Get(%s): %v", key, err)
			}
		}
		if x.State() != MirrorRestoring || x.Ready() {
			t.Errorf("state %v, ready %v", x.State(), x.Ready())
		}
		x.k.change(func() { x.k.limit = 0 })
		x.ready()
	})
}

func TestBatchesOfBeforeAFollowingAreDropped(t *testing.T) {
	m, err := NewMirror(MirrorConfig{Client: newFakeKafka().client(t), Topic: "t", Store: storage.Memory()})
	if err != nil {
		t.Fatal(err)
	}
	r, p := newMirrorRun(m), &mirrorPart{term: 2}
	released := 0
	batch := func() *kafka.Batch { return kafka.NewBatch(kafka.Batch{}, func() { released++ }) }
	r.delivered(p, 1, batch())
	r.delivered(p, 2, batch())
	if len(p.queue) != 1 || released != 1 {
		t.Errorf("%d queued, %d released", len(p.queue), released)
	}
	r.dropQueue(p)
	r.delivered(p, 2, batch())
	if len(p.queue) != 0 || released != 3 {
		t.Errorf("%d queued, %d released", len(p.queue), released)
	}
}
