package processor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// A takeover finds out where the tasks of new partitions begin:
//
//  1. read the marks, whatever is pending, and fence the writers that they
//     name, if they are gone;
//  2. read the committed offsets when nothing is pending;
//  3. claim: commit them again, with this process's mark, and the start
//     offsets of inputs that have none;
//  4. take the ends of the changelogs, which the tasks restore to.
//
// The order matters: what a former owner committed is seen by 2, or is
// refused after 3, and its rows are below the ends taken in 4. Without
// transactions there is nothing to fence, and nothing pending.

// takeover is the work for partitions that came together. It is given up
// when one of them is taken away.
type takeover struct {
	ctx    context.Context
	cancel context.CancelFunc
	claim  *task.Claim
	seen   []kafka.CommittedOffset // as read last; of its goroutine
}

func (t *takeover) giveUp() {
	t.cancel()
	t.claim.GiveUp()
}

// taken is where one task begins.
type taken struct {
	slot  *slot
	start task.Start
}

// take begins to take partitions over. One goroutine for all of them; it ends
// with its result, or when the session or one of the slots gives up.
func (s *session) take(partitions []int32) {
	if len(partitions) == 0 {
		return
	}
	t := &takeover{}
	t.ctx, t.cancel = context.WithCancel(s.ctx)
	t.claim = task.NewClaim(t.ctx, s.env.Work)
	slots := make([]*slot, 0, len(partitions))
	for _, p := range partitions {
		sl := &slot{partition: p, takeover: t}
		s.slots[p] = sl
		slots = append(slots, sl)
	}
	s.publish()
	s.helpers++
	work.Go(s.env.Work, func() { // see above
		defer s.ended.Put(struct{}{})
		starts, err := s.findStarts(t, slots)
		for errors.Is(err, task.ErrStaleClaim) { // the group's coordinator has moved
			starts, err = s.findStarts(t, slots)
		}
		switch {
		case t.ctx.Err() != nil:
			s.box.Put(message{kind: msgTaken}) // given up: slots that remain begin anew
		case err != nil:
			s.box.Put(message{kind: msgFailed, err: err})
		default:
			s.box.Put(message{kind: msgTaken, starts: starts})
		}
	})
}

// begin makes tasks of the slots that were taken over and are still wanted.
// One partition that is taken away ends the takeover of all that began with
// it: the others begin again.
func (s *session) begin(starts []taken) {
	for _, t := range starts {
		if s.slots[t.slot.partition] != t.slot || s.stopping {
			continue
		}
		t.slot.takeover.giveUp()
		t.slot.task = task.New(s.env, t.slot.partition, t.start)
		t.slot.task.Run()
	}
	if len(starts) > 0 || s.stopping {
		return
	}
	var again []int32
	for p, sl := range s.slots {
		if sl.task == nil && sl.takeover.ctx.Err() != nil {
			again = append(again, p)
		}
	}
	slices.Sort(again)
	s.take(again)
}

func (s *session) findStarts(t *takeover, slots []*slot) ([]taken, error) {
	g, ctx := &s.p.graph.spec, t.ctx
	if err := s.fenceFormer(ctx, slots); err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	committed, err := s.committed(ctx, slots, true)
	if s.txn == nil && errors.Is(err, kafka.ErrUnsupported) { // brokers that know no pending offsets have none
		committed, err = s.committed(ctx, slots, false)
	}
	if err != nil {
		return nil, fmt.Errorf("read committed offsets: %w", err)
	}
	t.seen = s.seen(slots, committed)
	if err := s.sameTopics(ctx, committed); err != nil {
		return nil, err
	}
	starts, err := s.startOffsets(ctx, slots, committed)
	if err != nil {
		return nil, err
	}
	if err := s.claim(t, slots, committed, starts); err != nil {
		return nil, fmt.Errorf("claim partitions: %w", err)
	}
	out := make([]taken, len(slots))
	for i, sl := range slots {
		out[i].slot = sl
		first := committed[kafka.TopicPartition{Topic: g.Inputs[0].Topic, Partition: sl.partition}]
		out[i].start.Mark, _ = task.DecodeMark(first.Metadata) // not a mark: no stream time
		for _, in := range g.Inputs {
			tp := kafka.TopicPartition{Topic: in.Topic, Partition: sl.partition}
			out[i].start.Inputs = append(out[i].start.Inputs, task.InputStart{ID: s.spec.topics[in.Topic].ID, Position: starts[tp]})
		}
	}
	if err := s.storeStarts(ctx, out); err != nil {
		return nil, err
	}
	return out, s.joinStarts(ctx, out, committed)
}

// seen returns what was found of each partition, -1 where nothing was.
func (s *session) seen(slots []*slot, committed map[kafka.TopicPartition]kafka.CommittedOffset) (all []kafka.CommittedOffset) {
	for _, sl := range slots {
		for _, topic := range s.p.graph.spec.Copartitioned() {
			tp := kafka.TopicPartition{Topic: topic, Partition: sl.partition}
			o, ok := committed[tp]
			if !ok {
				o = kafka.CommittedOffset{TopicPartition: tp, Offset: -1}
			}
			all = append(all, o)
		}
	}
	return all
}

// fenceFormer fences the writers that the marks name and that are gone.
func (s *session) fenceFormer(ctx context.Context, slots []*slot) error {
	if s.txn == nil {
		return nil
	}
	committed, err := s.committed(ctx, slots, false)
	if err != nil {
		return err
	}
	fenced := map[string]bool{}
	for _, o := range committed {
		mark, _ := task.DecodeMark(o.Metadata) // not a mark: no writer
		if !fenced[mark.Writer] && s.departed(mark.Writer) {
			fenced[mark.Writer] = true
			s.fence(ctx, mark.Writer)
		}
	}
	return ctx.Err()
}

// sameTopics looks whether offsets were committed for other topics of the same
// names: those mean nothing any more. They end the processor, or count as
// lost if the options say what to do then. The topics must be those that this
// session began with: it would claim partitions in the name of others.
func (s *session) sameTopics(ctx context.Context, committed map[kafka.TopicPartition]kafka.CommittedOffset) error {
	names := s.p.graph.spec.Copartitioned()
	now, err := s.p.client.Driver().Admin().Topics(ctx, names...)
	if err != nil {
		return fmt.Errorf("ask for topics: %w", err)
	}
	for _, name := range names {
		if t, ok := now[name]; ok && t.ID != s.spec.topics[name].ID {
			return fmt.Errorf("topic %s: %w", name, kafka.ErrTopicChanged)
		}
	}
	for tp, o := range committed {
		was, ok := task.TopicOf(o.Metadata)
		is := s.spec.topics[tp.Topic].ID
		if !ok || was == is || is == (kafka.TopicID{}) {
			continue
		}
		if s.p.cfg.lost == FailOnLostOffsets {
			return &kafka.Error{TopicPartition: tp, Offset: o.Offset, Err: fmt.Errorf(
				"%w: the group's committed offset is of another topic of that name, which is gone (WithLostOffsets says where to go on)", kafka.ErrTopicChanged)}
		}
		s.p.log.Warn("the committed offset is of another topic of that name, which is gone; it counts as lost",
			zap.String("group", s.p.graph.spec.Group), zap.String("partition", tp.String()), zap.Int64("offset", o.Offset))
		delete(committed, tp)
	}
	return nil
}

// committed reads the group's offsets of all inputs and joined tables; with
// stable when no transaction has one pending.
func (s *session) committed(ctx context.Context, slots []*slot, stable bool) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	topics := s.p.graph.spec.Copartitioned()
	parts := make([]kafka.TopicPartition, 0, len(topics)*len(slots))
	for _, sl := range slots {
		for _, topic := range topics {
			parts = append(parts, kafka.TopicPartition{Topic: topic, Partition: sl.partition})
		}
	}
	offsets, err := s.member.Committed(ctx, parts, stable)
	if err != nil {
		return nil, err
	}
	out := make(map[kafka.TopicPartition]kafka.CommittedOffset, len(offsets))
	for _, o := range offsets {
		if o.Err != nil {
			return nil, &kafka.Error{TopicPartition: o.TopicPartition, Offset: -1, Err: o.Err}
		}
		if o.Offset >= 0 {
			out[o.TopicPartition] = o
		}
	}
	return out, nil
}

// startOffsets returns where each input begins: where the group is, or for
// one without an offset where its options say.
func (s *session) startOffsets(ctx context.Context, slots []*slot, committed map[kafka.TopicPartition]kafka.CommittedOffset) (map[kafka.TopicPartition]int64, error) {
	g := &s.p.graph.spec
	lost, err := s.lostOffsets(ctx, slots, committed)
	if err != nil {
		return nil, err
	}
	out := map[kafka.TopicPartition]int64{}
	var earliest, latest []kafka.TopicPartition
	for _, sl := range slots {
		for _, in := range g.Inputs {
			tp := kafka.TopicPartition{Topic: in.Topic, Partition: sl.partition}
			if o, ok := committed[tp]; ok {
				out[tp] = o.Offset
				continue
			}
			if lost[sl.partition] && s.p.cfg.lost == RestartLatest || in.Latest && !lost[sl.partition] {
				latest = append(latest, tp)
			} else {
				earliest = append(earliest, tp)
			}
		}
	}
	for mark, parts := range map[kafka.Mark][]kafka.TopicPartition{kafka.LogStart: earliest, kafka.HighWatermark: latest} {
		if len(parts) == 0 {
			continue
		}
		found, err := s.p.client.Driver().Admin().Offsets(ctx, mark, parts...)
		if err != nil {
			return nil, fmt.Errorf("ask for start offsets: %w", err)
		}
		maps.Copy(out, found)
	}
	return out, nil
}

// lostOffsets finds the partitions whose changelogs have rows although no
// input has an offset.
func (s *session) lostOffsets(ctx context.Context, slots []*slot, committed map[kafka.TopicPartition]kafka.CommittedOffset) (map[int32]bool, error) {
	g := &s.p.graph.spec
	out := map[int32]bool{}
	for _, sl := range slots {
		known := false
		for _, in := range g.Inputs {
			_, ok := committed[kafka.TopicPartition{Topic: in.Topic, Partition: sl.partition}]
			known = known || ok
		}
		if known {
			continue
		}
		for _, st := range g.Stores {
			if st.Changelog == "" {
				continue
			}
			bounds, err := replica.AskBounds(ctx, s.p.client.Driver().Admin(), st.Changelog, sl.partition)
			if err != nil {
				return nil, err
			}
			b := bounds[sl.partition]
			if b.HighWatermark <= b.LogStart {
				continue
			}
			if s.p.cfg.lost == FailOnLostOffsets {
				return nil, &kafka.Error{TopicPartition: kafka.TopicPartition{Topic: st.Changelog, Partition: sl.partition}, Offset: b.HighWatermark, Err: ErrOffsetsLost}
			}
			out[sl.partition] = true
		}
	}
	return out, nil
}

// claim commits the start offsets with this process's mark.
func (s *session) claim(t *takeover, slots []*slot, committed map[kafka.TopicPartition]kafka.CommittedOffset, starts map[kafka.TopicPartition]int64) error {
	g := &s.p.graph.spec
	offsets := make([]kafka.CommittedOffset, 0, len(starts))
	for _, sl := range slots {
		for i, in := range g.Inputs {
			tp := kafka.TopicPartition{Topic: in.Topic, Partition: sl.partition}
			id := s.spec.topics[in.Topic].ID
			o := kafka.CommittedOffset{TopicPartition: tp, Offset: starts[tp], LeaderEpoch: -1, Metadata: task.TopicMetadata(id)}
			if i == 0 {
				mark, _ := task.DecodeMark(committed[tp].Metadata)
				mark.Topic, mark.Writer, mark.Fingerprint = id, s.env.ProcessID, s.env.Fingerprint
				o.Metadata = mark.Encode()
			}
			offsets = append(offsets, o)
		}
	}
	return t.claim.Make(s.lane, offsets, t.seen)
}

// storeStarts takes the ends of the changelogs.
func (s *session) storeStarts(ctx context.Context, out []taken) error {
	for _, st := range s.p.graph.spec.Stores {
		var bounds map[int32]replica.Bounds
		if st.Changelog != "" {
			var err error
			if bounds, err = s.bounds(ctx, st.Changelog, out); err != nil {
				return err
			}
		}
		for i := range out {
			b := bounds[out[i].slot.partition]
			out[i].start.Stores = append(out[i].start.Stores, task.StoreStart{Bounds: b, MaxBytes: s.spec.maxBytes[st.Changelog], Owned: true})
		}
	}
	return nil
}

// joinStarts says how far the joined tables are restored: to where the group
// has read them, or at its first start to their end or not at all.
func (s *session) joinStarts(ctx context.Context, out []taken, committed map[kafka.TopicPartition]kafka.CommittedOffset) error {
	for _, j := range s.p.graph.spec.Joins {
		bounds, err := s.bounds(ctx, j.Topic, out)
		if err != nil {
			return err
		}
		for i := range out {
			p := out[i].slot.partition
			start := task.JoinStart{Bounds: bounds[p], Target: replica.Target{At: bounds[p].LogStart, Exact: true}}
			if o, ok := committed[kafka.TopicPartition{Topic: j.Topic, Partition: p}]; ok {
				start.Target.At = o.Offset
			} else if j.First {
				start.Target = replica.Target{At: bounds[p].LastStable}
			}
			out[i].start.Joins = append(out[i].start.Joins, start)
		}
	}
	return nil
}

func (s *session) bounds(ctx context.Context, topic string, out []taken) (map[int32]replica.Bounds, error) {
	parts := make([]int32, len(out))
	for i := range out {
		parts[i] = out[i].slot.partition
	}
	return replica.AskBounds(ctx, s.p.client.Driver().Admin(), topic, parts...)
}
