package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// mirrorNote is what a mirror keeps in the checkpoint of each partition.
type mirrorNote struct {
	partitions int32 // of the topic
	complete   bool  // this partition was complete once
	misplaced  bool  // some key is not where the client's partitioner places it
}

func (n mirrorNote) encode() []byte {
	flags := byte(0)
	if n.complete {
		flags |= 1
	}
	if n.misplaced {
		flags |= 2
	}
	return binary.AppendUvarint([]byte{flags}, uint64(n.partitions))
}

func decodeMirrorNote(b []byte) (n mirrorNote, ok bool) {
	if len(b) < 2 {
		return n, false
	}
	count, size := binary.Uvarint(b[1:])
	if size != len(b)-1 || count == 0 || count > 1<<24 {
		return n, false
	}
	return mirrorNote{int32(count), b[0]&1 != 0, b[0]&2 != 0}, true
}

// open opens the store and what it holds of the topic, then connects.
func (r *mirrorRun) open() {
	r.spawn(func() func() {
		store, err := r.m.cfg.Store.Open()
		if err != nil {
			return func() { r.fail(err) }
		}
		n, err := r.localCount(store)
		var parts []*mirrorPart
		if err == nil {
			parts, err = r.openParts(store, nil, n)
		}
		return func() {
			r.store = store
			r.setParts(parts)
			if err != nil {
				r.fail(err)
				return
			}
			r.recall()
			r.connect(0)
		}
	})
}

// localCount is how many partitions the store knows the topic to have: as many
// as it has tables, unless a checkpoint says more.
func (r *mirrorRun) localCount(s storage.Store) (int32, error) {
	ids, err := s.Tables()
	n := int32(0)
	for _, id := range ids {
		if id.Name == r.m.cfg.StoreName {
			n = max(n, id.Partition+1)
		}
	}
	return n, err
}

// openParts opens the partitions from len(have) to n. What it opened before an
// error is returned too.
func (r *mirrorRun) openParts(s storage.Store, have []*mirrorPart, n int32) ([]*mirrorPart, error) {
	cfg := &r.m.cfg
	parts := slices.Clone(have)
	for id := int32(len(have)); id < n; id++ {
		st, err := s.Table(cfg.StoreName, id)
		if errors.Is(err, storage.ErrBusy) {
			return parts, fmt.Errorf("table %s is followed already by another one on this storage: %w", cfg.Topic, err)
		}
		if err != nil {
			return parts, err
		}
		t, err := NewTable(TableConfig{
			Store:      st,
			CacheBytes: max(cfg.CacheBytes/int(n), 256<<10),
			FlushBytes: max(cfg.FlushBytes/int(n), 1),
			FlushAge:   cfg.FlushAge,
		})
		if err != nil {
			return parts, errors.Join(err, st.Close())
		}
		p := &mirrorPart{id: id}
		p.rep = New(Config{
			TopicPartition: kafka.TopicPartition{Topic: cfg.Topic, Partition: id},
			Table:          t,
			Accept:         func(rec *kafka.Record) bool { return r.accept(p, rec) },
			Clock:          r.m.clock,
			Log:            r.m.log,
		})
		parts = append(parts, p)
	}
	return parts, nil
}

func (r *mirrorRun) setParts(parts []*mirrorPart) {
	r.parts = parts
	shared := slices.Clone(parts)
	if len(shared) > 0 {
		r.m.parts.Store(&shared)
	}
}

// recall reads from the checkpoints what the last run knew.
func (r *mirrorRun) recall() {
	r.local = len(r.parts) > 0
	for _, p := range r.parts {
		cp, ok := p.rep.t.Committed()
		note, known := decodeMirrorNote(cp.Owner)
		p.mu.Lock()
		p.usable = ok && known && note.complete && int(note.partitions) == len(r.parts)
		p.mu.Unlock()
		r.local = r.local && p.usable
		if note.misplaced {
			r.m.misplaced.Store(true)
		}
	}
}

// note writes into the checkpoints of p what recall reads. p.mu is held.
func (r *mirrorRun) note(p *mirrorPart) {
	p.rep.owner = mirrorNote{int32(len(r.parts)), p.usable, r.m.misplaced.Load()}.encode()
}

// connect looks for the topic, d from now, and follows what is not followed
// yet.
func (r *mirrorRun) connect(d time.Duration) {
	if r.dialing || r.stopping {
		return
	}
	r.dialing = true
	if d > 0 {
		r.after(d, r.dial)
		return
	}
	r.dial()
}

func (r *mirrorRun) dial() {
	if r.stopping {
		return
	}
	idle := r.idle()
	r.spawn(func() func() {
		bounds, err := AskBounds(r.ctx, r.m.cfg.Client.Driver().Admin(), r.m.cfg.Topic)
		if err == nil {
			err = r.askCuts(idle, bounds)
		}
		return func() {
			r.dialing = false
			switch {
			case r.stopping:
			case err != nil:
				r.unreachable(err)
			default:
				r.found(bounds)
			}
		}
	})
}

// idle are the partitions that are not followed.
func (r *mirrorRun) idle() []*mirrorPart {
	var idle []*mirrorPart
	for _, p := range r.parts {
		if !p.following {
			idle = append(idle, p)
		}
	}
	return idle
}

// askCuts asks whether the logs still have what was read of them.
func (r *mirrorRun) askCuts(parts []*mirrorPart, bounds map[int32]Bounds) error {
	for _, p := range parts {
		b, ok := bounds[p.id]
		if !ok {
			continue
		}
		p.mu.Lock()
		cp, has := p.rep.t.Committed()
		p.mu.Unlock()
		if !has {
			continue
		}
		tp := kafka.TopicPartition{Topic: r.m.cfg.Topic, Partition: p.id}
		if err := b.AskCut(r.ctx, r.m.cfg.Client.Driver().Admin(), tp, cp); err != nil {
			return err
		}
		bounds[p.id] = b
	}
	return nil
}

// unreachable tries again later, unless that is in vain.
func (r *mirrorRun) unreachable(err error) {
	now := r.m.clock.Now()
	r.connected = false
	if kafka.Permanent(err) || errors.Is(err, kafka.ErrInvalidTopic) || errors.Is(err, kafka.ErrClosed) {
		r.fail(err)
		return
	}
	if errors.Is(err, kafka.ErrUnknownTopic) {
		if r.missing.IsZero() {
			r.missing = now
		}
		if limit := r.m.cfg.MissingTopic; limit > 0 && now.Sub(r.missing) >= limit {
			r.fail(err)
			return
		}
	}
	r.tries++
	// A topic that is missing at first is often about to be created, by the
	// processor beside a view for one.
	expected := r.tries == 1 && errors.Is(err, kafka.ErrUnknownTopic)
	if r.tries&(r.tries-1) == 0 && !expected { // the 1st, 2nd, 4th …
		r.m.log.Warn("table topic cannot be followed, will go on trying", zap.Error(err), zap.Int("tries", r.tries))
	}
	r.connect(r.pause)
	r.pause = min(2*r.pause, maxPause)
}

// found opens partitions that are new and starts all that are not followed.
func (r *mirrorRun) found(bounds map[int32]Bounds) {
	n := int32(len(bounds))
	if n == 0 {
		r.unreachable(kafka.ErrUnknownTopic)
		return
	}
	if int(n) < len(r.parts) || r.topicID != bounds[0].TopicID {
		for _, p := range r.parts {
			r.unfollow(p)
		}
	}
	r.topicID = bounds[0].TopicID
	r.silent, r.missing = false, time.Time{}
	r.dialing = true
	known, store := r.parts, r.store
	var idle []*mirrorPart
	for _, p := range known[:min(len(known), int(n))] {
		if !p.following {
			idle = append(idle, p)
		}
	}
	r.spawn(func() func() {
		parts, err := r.resize(store, known, n)
		added := parts[min(len(known), len(parts)):]
		if err == nil {
			err = r.startParts(append(idle, added...), bounds)
		}
		return func() {
			r.dialing = false
			r.setParts(parts)
			if err != nil {
				r.fail(err)
			} else if !r.stopping {
				r.followAll(len(known) > 0 && int(n) > len(known))
			}
		}
	})
}

// resize opens partitions that the topic has got since, or empties those that
// it has not any more.
func (r *mirrorRun) resize(s storage.Store, have []*mirrorPart, n int32) ([]*mirrorPart, error) {
	if int(n) >= len(have) {
		return r.openParts(s, have, n)
	}
	var errs []error
	for _, p := range have[n:] {
		p.mu.Lock()
		p.usable = false
		errs = append(errs, p.rep.t.Clear(), p.rep.t.Close())
		p.mu.Unlock()
	}
	return have[:n:n], errors.Join(errs...)
}

// startParts lets each partition decide where to begin.
func (r *mirrorRun) startParts(parts []*mirrorPart, bounds map[int32]Bounds) error {
	for _, p := range parts {
		b := bounds[p.id]
		p.mu.Lock()
		before := p.rep.p.Rebuilds
		err := p.rep.Start(b, Target{At: b.LastStable})
		p.usable = err == nil && (p.usable && p.rep.p.Rebuilds == before || p.rep.state == Live)
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// followAll begins to follow what is not followed. A topic that grew has keys
// in other partitions than where they would be placed now.
func (r *mirrorRun) followAll(grown bool) {
	if grown {
		r.m.misplaced.Store(true)
	}
	if r.fetcher == nil {
		f, err := r.m.cfg.Client.Driver().NewFetcher(kafka.FetcherConfig{})
		if err != nil {
			r.fail(err)
			return
		}
		r.fetcher = f
	}
	r.connected, r.pause, r.tries = true, minPause, 0
	for _, p := range r.parts {
		p.mu.Lock()
		r.note(p)
		p.rep.t.Advance(p.rep.Checkpoint())
		p.mu.Unlock()
		if !p.following {
			r.follow(p)
		}
	}
}

// probe asks the brokers for topic and log ends, one question at a time, and
// notices that the last one is not answered.
func (r *mirrorRun) probe() {
	now := r.m.clock.Now()
	if r.probing {
		r.silent = now.Sub(r.probedAt) >= 3*r.m.cfg.Probe
		return
	}
	if !r.connected || len(r.parts) == 0 {
		return
	}
	r.probing, r.probedAt = true, now
	topic, admin := r.m.cfg.Topic, r.m.cfg.Client.Driver().Admin()
	tps := make([]kafka.TopicPartition, 0, len(r.parts))
	for _, p := range r.parts {
		tps = append(tps, kafka.TopicPartition{Topic: topic, Partition: p.id})
	}
	r.spawn(func() func() {
		topics, err := admin.Topics(r.ctx, topic)
		var ends map[kafka.TopicPartition]int64
		if _, ok := topics[topic]; ok && err == nil {
			ends, err = admin.Offsets(r.ctx, kafka.LastStable, tps...)
		}
		return func() {
			r.probing = false
			if !r.stopping {
				r.probed(topics[topic], ends, err)
			}
		}
	})
}

// probed takes the answer. A topic that is gone, another one or larger than it
// was is looked for anew.
func (r *mirrorRun) probed(t kafka.Topic, ends map[kafka.TopicPartition]int64, err error) {
	if err != nil && !errors.Is(err, kafka.ErrUnknownTopic) {
		if kafka.Permanent(err) {
			r.fail(err)
		}
		return
	}
	r.silent = false
	if ends == nil || changed(t.ID, r.topicID) || int(t.Partitions) != len(r.parts) {
		r.connected = r.connected && ends != nil && !changed(t.ID, r.topicID)
		r.connect(0)
		return
	}
	for _, p := range r.parts {
		p.mu.Lock()
		p.rep.NoteEnd(ends[kafka.TopicPartition{Topic: r.m.cfg.Topic, Partition: p.id}], r.probedAt)
		p.mu.Unlock()
	}
}
