package systemtest

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/badgerstore"
)

// running is a processor in this process.
type running struct {
	p      *processor.Processor
	cancel context.CancelFunc
	result chan error
}

func (s service) start(t *testing.T, c *kafka.Client, opts ...processor.Option) *running {
	t.Helper()
	p, err := s.processor(c, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return launch(t, p)
}

// launch runs a processor and waits until it is ready.
func launch(t *testing.T, p *processor.Processor) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{p: p, cancel: cancel, result: make(chan error, 1)}
	go func() { r.result <- p.Run(ctx) }() // stop waits
	wait, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	if err := p.WaitReady(wait); err != nil {
		cancel()
		t.Fatalf("not ready: %v (run: %v)", err, <-r.result)
	}
	return r
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := <-r.result; err != nil {
		t.Fatalf("run: %v", err)
	}
}

func newService(t *testing.T, b broker) service {
	return service{Brokers: strings.Join(b.brokers, ","), Input: unique(t, "events"), Group: unique(t, "group"), Dir: t.TempDir()}
}

func TestFirstStartOnEmptyTopicsServesAndThenCounts(t *testing.T) {
	onBoth(t, false, func(t *testing.T, b broker) {
		c, s := b.client(t), newService(t, b)
		b.topics(t, c, 3, s.Input)
		r := s.start(t, c)
		l := newLoad(t, c, s.Input)
		l.emit(t, 500)
		l.counted(t, c, s.Group)
		r.stop(t)
	})
}

func TestRestartWithLocalStoreReplaysNothingAndWithoutItEverything(t *testing.T) {
	onBoth(t, false, func(t *testing.T, b broker) {
		c, s := b.client(t), newService(t, b)
		b.topics(t, c, 3, s.Input)
		l := newLoad(t, c, s.Input)
		l.emit(t, 1000)
		r := s.start(t, c)
		l.counted(t, c, s.Group)
		r.stop(t)

		r = s.start(t, c)
		if rows := restored(r.p); rows != 0 {
			t.Errorf("a restart on its own store restored %d rows, want 0", rows)
		}
		l.emit(t, 1000)
		l.counted(t, c, s.Group)
		r.stop(t)

		if err := os.RemoveAll(s.Dir); err != nil {
			t.Fatal(err)
		}
		r = s.start(t, c)
		if rows := restored(r.p); rows < loadKeys {
			t.Errorf("a restart on an empty disk restored %d rows, want at least %d", rows, loadKeys)
		}
		l.emit(t, 1000)
		l.counted(t, c, s.Group)
		r.stop(t)
		sameAsStore(t, c, s)
	})
}

func restored(p *processor.Processor) (rows int64) {
	for _, part := range p.Stats().Partitions {
		rows += part.RestoredRows
	}
	return rows
}

// sameAsStore compares the rows of a stopped service's store with the fold
// of its changelog.
func sameAsStore(t *testing.T, c *kafka.Client, s service) {
	t.Helper()
	want := fold(t, c, reka.TableTopic(s.Group))
	st, err := badgerstore.In(s.Dir).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	}()
	ids, err := st.Tables()
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, id := range ids {
		table, err := st.Table(id.Name, id.Partition)
		if err != nil {
			t.Fatal(err)
		}
		got += compareRows(t, table, want)
		if err := table.Close(); err != nil {
			t.Errorf("close table: %v", err)
		}
	}
	if got != len(want) {
		t.Errorf("the store has %d rows, the changelog folds to %d", got, len(want))
	}
}

func compareRows(t *testing.T, table storage.Table, want map[string]string) int {
	t.Helper()
	snap, err := table.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Release()
	n := 0
	for row, err := range snap.Scan(storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		// A stored value ends with the record's value, after its time.
		if v, ok := want[string(row.Key)]; !ok || !strings.HasSuffix(string(row.Value), v) {
			t.Errorf("the store has a row for %q that the changelog does not", row.Key)
		}
	}
	return n
}

func TestKilledTwentyTimesNothingIsLostAndStoreEqualsChangelog(t *testing.T) {
	onBoth(t, false, func(t *testing.T, b broker) {
		c, s := b.client(t), newService(t, b)
		b.topics(t, c, 3, s.Input)
		l := newLoad(t, c, s.Input)
		random := rand.New(rand.NewPCG(7, 7))
		for round := range 20 {
			child := spawn(t, s)
			if round%4 == 0 {
				child.awaitReady(t)
			}
			l.emit(t, 300)
			moment(t, time.Duration(random.IntN(1200))*time.Millisecond)
			child.kill()
		}
		last := spawn(t, s)
		last.awaitReady(t)
		l.counted(t, c, s.Group)
		last.stop(t)
		sameAsStore(t, c, s)
	})
}

// moment waits for a random moment to strike.
func moment(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
