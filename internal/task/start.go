package task

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// Start is where a task begins, as the takeover found it.
type Start struct {
	Inputs []InputStart // by index of Graph.Inputs
	Joins  []JoinStart  // by index of Graph.Joins
	Stores []StoreStart // by index of Graph.Stores
	Mark   Mark         // of the committed offset, or one with no stream time
}

// InputStart is the committed position of one input.
type InputStart struct {
	ID       kafka.TopicID
	Position int64
}

// JoinStart is where the restore of a joined table ends.
type JoinStart struct {
	Bounds replica.Bounds
	Target replica.Target
}

// StoreStart is what is known of a store's changelog.
type StoreStart struct {
	Bounds   replica.Bounds
	MaxBytes int // of one record
	// Owned says that the group has committed input on this changelog.
	Owned bool
}

// store is a store, or a joined table, of a task.
type store struct {
	decl      graph.Store          // joined tables: zero
	changelog kafka.TopicPartition // joined tables: the table's topic; local stores: no topic
	id        kafka.TopicID
	limit     int // bytes of a changelog record, 0: unknown
	table     *replica.Table
	end       int64     // changelog position after the last epoch
	atEnd     time.Time // joined tables: when the position was last the end of the log
	broken    bool      // a flush failed: no further one
	lines     []*timeline
}

// line returns the timeline of a prefix.
func (s *store) line(prefix byte) *timeline {
	for _, l := range s.lines {
		if l.prefix == prefix {
			return l
		}
	}
	return nil // not reached: the graph declares every timeline
}

func (s *store) name() string {
	if s.decl.Name != "" {
		return s.decl.Name
	}
	return s.changelog.Topic
}

// restore is a store that follows its log.
type restore struct {
	store   *store
	replica *replica.Replica
	input   *input // of a joined table
	index   int
	term    int            // of following: batches of an earlier one are not applied
	waiting []*kafka.Batch // while the table is full
	done    bool
}

// flushed is a flush that has ended.
type flushed struct {
	store *store
	flush *replica.Flush
	err   error
}

func (t *Task) makeInputs() {
	for i, j := range t.env.Graph.Joins {
		t.inputs = append(t.inputs, &input{
			TopicPartition: kafka.TopicPartition{Topic: j.Topic, Partition: t.partition},
			id:             t.start.Joins[i].Bounds.TopicID, join: i, slot: -1, lastStable: -1,
		})
	}
	for i, decl := range t.env.Graph.Inputs {
		at := t.start.Inputs[i]
		t.inputs = append(t.inputs, &input{
			TopicPartition: kafka.TopicPartition{Topic: decl.Topic, Partition: t.partition},
			id:             at.ID, join: -1, slot: i, loop: decl.Loop, internal: decl.Internal(), lastStable: -1,
			position: at.Position, fetched: at.Position, committed: at.Position, purged: at.Position,
		})
	}
	tables := len(t.env.Graph.Joins)
	for _, decl := range t.env.Graph.Inputs {
		if decl.Table {
			tables++
		}
	}
	rows, streams := 0, tables
	for _, in := range t.inputs {
		in.metadata = TopicMetadata(in.id)
		if in.slot < 0 || t.env.Graph.Inputs[in.slot].Table {
			in.rank, rows = rows, rows+1
		} else {
			in.rank, streams = streams, streams+1
		}
	}
}

// open opens the stores and begins to restore them.
func (t *Task) open() error {
	for i, decl := range t.env.Graph.Stores {
		at := t.start.Stores[i]
		s := &store{decl: decl, id: at.Bounds.TopicID, limit: at.MaxBytes}
		if decl.Changelog != "" {
			s.changelog = kafka.TopicPartition{Topic: decl.Changelog, Partition: t.partition}
		}
		t.stores = append(t.stores, s)
		if err := t.openTable(s, "store:"+decl.Name); err != nil {
			return err
		}
		if decl.Changelog == "" {
			if err := s.table.Clear(); err != nil {
				return &StoreError{Store: s.name(), Err: err}
			}
			continue
		}
		t.follow(s, nil, at.Owned)
	}
	for i, decl := range t.env.Graph.Joins {
		s := &store{changelog: kafka.TopicPartition{Topic: decl.Topic, Partition: t.partition}, id: t.start.Joins[i].Bounds.TopicID}
		t.joins = append(t.joins, s)
		if err := t.openTable(s, "join:"+decl.Topic); err != nil {
			return err
		}
		t.follow(s, t.inputs[i], false)
	}
	for _, r := range t.restoring {
		if err := t.startRestore(r); err != nil {
			return err
		}
	}
	t.maybeRun()
	return nil
}

// openTable opens the table of a store. A former holder in this process that
// is still closing is waited for.
func (t *Task) openTable(s *store, name string) error {
	const pause = 20 * time.Millisecond
	for tries := 0; ; tries++ {
		handle, err := t.env.Store.Table(t.env.Graph.Group+"/"+name, t.partition)
		if err == nil {
			s.table, err = replica.NewTable(replica.TableConfig{
				Store: handle, CacheBytes: t.env.CacheBytes, FlushBytes: t.env.FlushBytes, FlushAge: t.env.FlushAge,
				Epoch: func() int32 { return t.env.Epochs.Newest(s.changelog) },
			})
			if err != nil {
				return errors.Join(&StoreError{Store: s.name(), Err: err}, handle.Close())
			}
			for _, prefix := range s.decl.Timelines {
				s.lines = append(s.lines, newTimeline(s.table, prefix))
			}
			return nil
		}
		if !errors.Is(err, storage.ErrBusy) {
			return &StoreError{Store: s.name(), Err: err}
		}
		if tries == 100 {
			t.env.Log.Warn("waiting for a table that is still in use", zap.String("store", s.name()), zap.Int32("partition", t.partition))
		}
		if err := t.env.Clock.Sleep(t.ctx, pause); err != nil {
			return &StoreError{Store: s.name(), Err: err}
		}
	}
}

func (t *Task) follow(s *store, in *input, owned bool) {
	t.restoring = append(t.restoring, &restore{
		store: s, input: in, index: len(t.restoring),
		replica: replica.New(replica.Config{
			TopicPartition: s.changelog, Table: s.table, Owned: owned, Clock: t.env.Clock, Log: t.env.Log,
		}),
	})
}

func (t *Task) startRestore(r *restore) error {
	var bounds replica.Bounds
	var target replica.Target
	if r.input != nil {
		bounds, target = t.start.Joins[r.input.join].Bounds, t.start.Joins[r.input.join].Target
	} else {
		bounds = t.start.Stores[t.indexOf(r.store)].Bounds
		target.At = bounds.HighWatermark
	}
	if cp, ok := r.store.table.Committed(); ok {
		if err := t.env.Epochs.Cut(t.ctx, &bounds, r.store.changelog, cp); err != nil {
			return fmt.Errorf("restore of %s: %w", r.store.changelog, err)
		}
	}
	if err := r.replica.Start(bounds, target); err != nil {
		return fmt.Errorf("restore of %s: %w", r.store.changelog, err)
	}
	if r.replica.State() == replica.Live {
		t.endRestore(r)
		return nil
	}
	t.followRestore(r)
	return nil
}

func (t *Task) indexOf(s *store) int {
	for i := range t.stores {
		if t.stores[i] == s {
			return i
		}
	}
	return -1
}

func (t *Task) followRestore(r *restore) {
	r.term++
	f, term := r.replica.Follow(), r.term
	f.Deliver = func(b *kafka.Batch) {
		if !t.box.Put(message{kind: msgRestore, index: r.index, term: term, batch: b}) {
			b.Release()
		}
	}
	t.env.Restorer.Follow(f)
}

// restoreBatch applies a batch of a changelog, or keeps it while the table is
// full.
func (t *Task) restoreBatch(r *restore, term int, b *kafka.Batch) {
	if t.state != stateRestoring || t.failed != nil || r.done || term != r.term {
		b.Release()
		return
	}
	r.waiting = append(r.waiting, b)
	t.applyWaiting(r)
}

func (t *Task) applyWaiting(r *restore) {
	for len(r.waiting) > 0 && !r.done && !r.store.table.Full() && t.failed == nil {
		b := r.waiting[0]
		r.waiting = r.waiting[1:]
		again, err := r.replica.Apply(b)
		b.Release()
		switch {
		case err != nil:
			t.fail(fmt.Errorf("restore of %s: %w", r.store.changelog, err))
			return
		case again:
			r.release()
			t.followRestore(r)
			return
		}
		if r.store.table.FlushDue(t.env.Clock.Now()) {
			t.beginFlush(r.store)
		}
		if r.replica.State() == replica.Live {
			t.env.Restorer.Unfollow(r.store.changelog)
			t.endRestore(r)
		}
	}
	if r.done {
		t.maybeRun()
	}
}

// resumeRestores goes on where a flush has made room.
func (t *Task) resumeRestores() {
	for _, r := range t.restoring {
		t.applyWaiting(r)
	}
}

func (r *restore) release() {
	for _, b := range r.waiting {
		b.Release()
	}
	r.waiting = nil
}

func (t *Task) endRestore(r *restore) {
	r.done = true
	r.release()
	position := r.replica.Position()
	r.store.end, r.store.atEnd = position, r.replica.Checkpoint().AtEnd
	if in := r.input; in != nil {
		in.position, in.fetched, in.committed = position, position, position
		if t.start.Joins[in.join].Target.Exact {
			return
		}
		in.committed = -1 // loaded beyond what is committed: goes into the next commit
		t.active.slid = true
	}
}

// maybeRun reads the inputs once everything is restored.
func (t *Task) maybeRun() {
	if t.state != stateRestoring || t.failed != nil {
		return
	}
	for _, r := range t.restoring {
		if !r.done {
			return
		}
	}
	for _, s := range t.stores {
		for _, l := range s.lines {
			if _, err := l.next(); err != nil {
				t.fail(&StoreError{Store: s.name(), Err: err})
				return
			}
		}
	}
	t.state = stateRunning
	for i, in := range t.inputs {
		t.env.Fetcher.Follow(kafka.Follow{TopicPartition: in.TopicPartition, TopicID: in.id, Position: in.position,
			Deliver: func(b *kafka.Batch) {
				if !t.box.Put(message{kind: msgInput, index: i, batch: b}) {
					b.Release()
				}
			}})
	}
	t.flush(false)
	t.watchIdle()
	t.event(Running, nil)
}
