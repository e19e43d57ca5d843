package systemtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
)

// Each of three processes is stopped and started again while events flow. In
// the end every event is counted once, however members keep their identity.
func TestRollingRestartOfThreeProcessesUnderLoadCountsEverythingOnce(t *testing.T) {
	for _, membership := range []string{"static", "kept", "dynamic"} {
		t.Run(membership, func(t *testing.T) {
			onBoth(t, false, func(t *testing.T, b broker) {
				c, s := b.client(t), newService(t, b)
				if membership != "static" {
					s.Membership = membership
				}
				b.topics(t, c, 6, s.Input)
				l := newLoad(t, c, s.Input)
				var all [3]service
				var running [3]*child
				for i := range all {
					all[i] = s
					all[i].Dir = t.TempDir()
					running[i] = spawn(t, all[i])
				}
				for i := range running {
					l.emitUntil(t, running[i].ready)
				}
				for i := range running {
					begun := time.Now()
					if err := running[i].cmd.Process.Signal(syscall.SIGTERM); err != nil {
						t.Fatal(err)
					}
					l.emitUntil(t, running[i].out)
					if err := running[i].cmd.Wait(); err != nil {
						t.Fatalf("process %d ended with %v", i, err)
					}
					running[i] = spawn(t, all[i])
					l.emitUntil(t, running[i].ready)
					t.Logf("%s: process %d was back after %v", membership, i, time.Since(begun).Round(time.Millisecond))
				}
				l.emit(t, 500)
				l.counted(t, c, s.Group)
				for _, r := range running {
					r.stop(t)
				}
			})
		})
	}
}

// emitUntil emits events until something has happened.
func (l *load) emitUntil(t *testing.T, happened <-chan struct{}) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; l.emit(t, 20) {
		select {
		case <-happened:
			return
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("a process is not ready, or not gone, after a minute")
		}
	}
}

// pace is a graph without state that notes when it is called for each
// partition, and which numbers it has seen.
type pace struct {
	topic string
	group string

	mu   sync.Mutex
	last map[int32]time.Time     // guarded by mu
	gaps map[int32]time.Duration // guarded by mu; the largest between two calls
	seen map[string]bool         // guarded by mu
}

func (p *pace) processor(c *kafka.Client, opts ...processor.Option) (*processor.Processor, error) {
	g, err := processor.NewGraph(p.group, processor.Input(reka.NewStream(p.topic, codec.String()), func(ctx *processor.Context, v string) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		now, at := time.Now(), ctx.Partition()
		if was, ok := p.last[at]; ok {
			p.gaps[at] = max(p.gaps[at], now.Sub(was))
		}
		p.last[at], p.seen[v] = now, true
		return nil
	}))
	if err != nil {
		return nil, err
	}
	return processor.New(c, g, opts...)
}

// take returns the largest gap of each partition since the last time.
func (p *pace) take() map[int32]time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.gaps
	p.gaps = map[int32]time.Duration{}
	return out
}

// commits follows when the partitions of a processor commit: the largest gap
// of each round.
type commits struct {
	last   map[int32]time.Time
	gap    time.Duration
	rounds []time.Duration
}

func (c *commits) look(p *processor.Processor) {
	seen := make(map[int32]time.Time, len(c.last))
	for _, s := range p.Stats().Partitions {
		if was := c.last[s.Partition]; !was.IsZero() {
			c.gap = max(c.gap, s.LastCommit.Sub(was))
		}
		seen[s.Partition] = s.LastCommit
	}
	c.last = seen
}

// begin begins a round: what was before does not count.
func (c *commits) begin() { c.last, c.gap = nil, 0 }

func (c *commits) end() { c.rounds = append(c.rounds, c.gap) }

func (c *commits) String() string {
	sorted := slices.Sorted(slices.Values(c.rounds))
	return fmt.Sprintf("%v (median of the rounds %v)", sorted[len(sorted)-1].Round(time.Millisecond), sorted[len(sorted)/2].Round(time.Millisecond))
}

func longest(gaps map[int32]time.Duration) (d time.Duration) {
	for _, g := range gaps {
		d = max(d, g)
	}
	return d
}

// Rebalances are measured, not judged by the clock: what must hold is that no
// event is lost. Times with and without rebalances take turns, so that what
// the machine does meanwhile tells on both. The member that comes and goes
// leaves when the group has long been quiet, and nobody listens closely for a
// rebalance. REKA_REBALANCES says how often it comes.
func TestPartitionsThatStayGoOnDuringRebalances(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("REKA_REBALANCES")); err == nil {
		rounds = n
	}
	onBoth(t, false, func(t *testing.T, b broker) {
		const partitions = 6
		c := b.client(t)
		p := &pace{topic: unique(t, "ticks"), group: unique(t, "pace"), last: map[int32]time.Time{}, gaps: map[int32]time.Duration{}, seen: map[string]bool{}}
		b.topics(t, c, partitions, p.topic)
		e, err := emitter.New(c, reka.NewStream(p.topic, codec.String()))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		var calm, moving commits
		watch := &calm
		var stays *running
		flow := func(d time.Duration, until func() bool) {
			t.Helper()
			for begun := time.Now(); time.Since(begun) < d || !until(); {
				for at := range int32(partitions) {
					if _, err := e.Emit(t.Context(), "", strconv.Itoa(n), reka.ToPartition(at)); err != nil {
						t.Fatal(err)
					}
					n++
				}
				watch.look(stays.p)
				moment(t, 5*time.Millisecond)
				if time.Since(begun) > time.Minute {
					t.Fatal("what was waited for did not happen")
				}
			}
		}
		start := func() *running {
			q, err := p.processor(b.client(t))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			r := &running{p: q, cancel: cancel, result: make(chan error, 1)}
			go func() { r.result <- q.Run(ctx) }() // waited for when it is stopped
			return r
		}
		of := func(r *running) map[int32]bool {
			out := map[int32]bool{}
			for _, s := range r.p.Stats().Partitions {
				out[s.Partition] = true
			}
			return out
		}
		at := func(r *running, n int) func() bool {
			return func() bool { return r.p.Ready() && len(of(r)) == n }
		}
		const quiet = 2200 * time.Millisecond // longer than a member listens closely
		stays = start()
		flow(2*quiet, at(stays, partitions))
		var without, moved, returned, stayed time.Duration
		for range rounds {
			watch = &calm
			p.take()
			calm.begin()
			flow(quiet, at(stays, partitions))
			calm.end()
			without = max(without, longest(p.take()))

			watch = &moving
			moving.begin()
			other := start()
			flow(quiet, at(other, partitions/2))
			there := of(other)
			for at, gap := range p.take() {
				if there[at] {
					moved = max(moved, gap)
				} else {
					stayed = max(stayed, gap)
				}
			}
			other.cancel()
			flow(quiet, at(stays, partitions))
			if err := <-other.result; err != nil {
				t.Fatal(err)
			}
			flow(500*time.Millisecond, at(stays, partitions)) // the first records of those that came back
			moving.end()
			for at, gap := range p.take() {
				if there[at] {
					returned = max(returned, gap)
				} else {
					stayed = max(stayed, gap)
				}
			}
		}
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		t.Logf("largest gap between two commits of a partition that stays: %v in %d rebalances, %v without", &moving, 2*rounds, &calm)
		t.Logf("largest gap between two records: %v of a partition that moves to a new member, %v of one whose member leaves, %v of one that stays, %v without rebalances", moved, returned, stayed, without)
		until(t, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.seen) == n
		}, func() string { return fmt.Sprintf("%d of %d events were seen", len(p.seen), n) })
		stays.stop(t)
	})
}

// Brokers are away for longer than a session: the group forgets its members,
// and they find together again by themselves.
func TestOutageLongerThanTheSessionEndsInProcessing(t *testing.T) {
	b := onFake(t)
	c, s := b.client(t), newService(t, b)
	b.topics(t, c, 3, s.Input)
	l := newLoad(t, c, s.Input)
	var mu sync.Mutex
	var states []processor.Status
	r := s.start(t, c, processor.WithSessionTimeout(3*time.Second), processor.WithHeartbeatInterval(500*time.Millisecond),
		processor.WithObserver(processor.Observer{State: func(st processor.Status) {
			mu.Lock()
			defer mu.Unlock()
			states = append(states, st)
		}}))
	l.emit(t, 100)
	l.counted(t, c, s.Group)
	b.outage(t, func() { moment(t, 8*time.Second) })
	l.emit(t, 100)
	l.counted(t, c, s.Group)
	until(t, r.p.Ready, func() string { return "not ready again" })
	mu.Lock()
	got := fmt.Sprint(states)
	mu.Unlock()
	if !strings.Contains(got, "serving connecting") || !strings.HasSuffix(got, "serving]") {
		t.Errorf("states %s, want connecting in between", got)
	}
	r.stop(t)
}

// A process runs on a copy of another one's state directory. The group knows
// one member of that name: the older one ends and says which directory it is.
func TestProcessOnACopiedStateDirectoryEndsTheOtherOne(t *testing.T) {
	onBoth(t, false, func(t *testing.T, b broker) {
		c, s := b.client(t), newService(t, b)
		b.topics(t, c, 3, s.Input)
		l := newLoad(t, c, s.Input)
		first := spawn(t, s)
		first.awaitReady(t)
		l.emit(t, 300)
		l.counted(t, c, s.Group)
		first.stop(t)
		copied := s
		copied.Dir = filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied.Dir, os.DirFS(s.Dir)); err != nil {
			t.Fatal(err)
		}
		r := s.start(t, c)
		twin := spawn(t, copied)
		err := <-r.result
		var e *storage.Error
		if !errors.As(err, &e) || e.Place != s.Dir || !errors.Is(err, kafka.ErrFencedInstance) {
			t.Fatalf("%v, want an error that names %s", err, s.Dir)
		}
		twin.awaitReady(t)
		l.emit(t, 300)
		l.counted(t, c, s.Group)
		twin.stop(t)
	})
}
