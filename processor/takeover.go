package processor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/assign"
	"github.com/rekastream/reka/internal/graph"
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

// takeover is the work for partitions of one subgraph that came together. It
// is given up when one of them is taken away.
type takeover struct {
	of     *subgraph
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

// take begins to take tasks over, those of each subgraph together.
func (s *session) take(tasks []assign.Task) {
	for _, sg := range s.subgraphs {
		var own []assign.Task
		for _, t := range tasks {
			if t.Subgraph == sg.spec.Subgraph {
				own = append(own, t)
			}
		}
		if len(own) > 0 {
			s.takeOf(sg, own)
		}
	}
}

// takeOf takes tasks of one subgraph over. One goroutine for all of them; it
// ends with its result, or when the session or one of the slots gives up.
func (s *session) takeOf(sg *subgraph, tasks []assign.Task) {
	t := &takeover{of: sg}
	t.ctx, t.cancel = context.WithCancel(s.ctx)
	t.claim = task.NewClaim(t.ctx, s.work)
	slots := make([]*slot, 0, len(tasks))
	for _, id := range tasks {
		sl := &slot{id: id, of: sg, takeover: t}
		s.slots[id] = sl
		slots = append(slots, sl)
	}
	s.publish()
	s.helpers++
	work.Go(s.work, func() { // see above
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
		if s.slots[t.slot.id] != t.slot || s.stopping {
			continue
		}
		t.slot.takeover.giveUp()
		t.slot.task = task.New(t.slot.of.env, t.slot.id.Partition, t.start)
		t.slot.task.Run()
	}
	if len(starts) > 0 || s.stopping {
		return
	}
	var again []assign.Task
	for id, sl := range s.slots {
		if sl.task == nil && sl.takeover.ctx.Err() != nil {
			again = append(again, id)
		}
	}
	slices.SortFunc(again, s.compareTasks)
	s.take(again)
}

func (s *session) findStarts(t *takeover, slots []*slot) ([]taken, error) {
	g, ctx := &t.of.spec, t.ctx
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
	t.seen = seen(slots, committed)
	if err := s.sameTopics(ctx, t.of.part, committed); err != nil {
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
		first := committed[sl.partition(g.Marked())]
		out[i].start.Mark, _ = task.DecodeMark(first.Metadata) // not a mark: no stream time
		for _, in := range g.Inputs {
			tp := sl.partition(in.Topic)
			out[i].start.Inputs = append(out[i].start.Inputs, task.InputStart{ID: s.spec.topics[in.Topic].ID, Position: starts[tp]})
		}
	}
	if err := s.storeStarts(ctx, g, out); err != nil {
		return nil, err
	}
	return out, s.joinStarts(t, out, committed)
}

// seen returns what was found of each partition, -1 where nothing was.
func seen(slots []*slot, committed map[kafka.TopicPartition]kafka.CommittedOffset) (all []kafka.CommittedOffset) {
	for _, sl := range slots {
		for _, topic := range sl.of.spec.Copartitioned() {
			tp := sl.partition(topic)
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
func (s *session) sameTopics(ctx context.Context, of *part, committed map[kafka.TopicPartition]kafka.CommittedOffset) error {
	names := of.spec.Copartitioned()
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
			zap.String("group", s.p.graph.group), zap.String("partition", tp.String()), zap.Int64("offset", o.Offset))
		delete(committed, tp)
	}
	return nil
}

// committed reads the group's offsets of all inputs and joined tables; with
// stable when no transaction has one pending.
func (s *session) committed(ctx context.Context, slots []*slot, stable bool) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	var parts []kafka.TopicPartition
	for _, sl := range slots {
		for _, topic := range sl.of.spec.Copartitioned() {
			parts = append(parts, sl.partition(topic))
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
	lost, err := s.lostOffsets(ctx, slots, committed)
	if err != nil {
		return nil, err
	}
	out := map[kafka.TopicPartition]int64{}
	var earliest, latest []kafka.TopicPartition
	for _, sl := range slots {
		if tp := sl.partition(sl.of.spec.Marked()); len(sl.of.spec.Inputs) == 0 { // a joined table carries the mark
			if o, ok := committed[tp]; ok {
				out[tp] = o.Offset
			} else {
				earliest = append(earliest, tp)
			}
		}
		for _, in := range sl.of.spec.Inputs {
			tp := sl.partition(in.Topic)
			if o, ok := committed[tp]; ok {
				out[tp] = o.Offset
				continue
			}
			if lost[sl] && s.p.cfg.lost == RestartLatest || in.Latest && !lost[sl] {
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
func (s *session) lostOffsets(ctx context.Context, slots []*slot, committed map[kafka.TopicPartition]kafka.CommittedOffset) (map[*slot]bool, error) {
	out := map[*slot]bool{}
	for _, sl := range slots {
		_, known := committed[sl.partition(sl.of.spec.Marked())]
		for _, in := range sl.of.spec.Inputs {
			_, ok := committed[sl.partition(in.Topic)]
			known = known || ok
		}
		if known {
			continue
		}
		for _, st := range sl.of.spec.Stores {
			if st.Changelog == "" {
				continue
			}
			bounds, err := replica.AskBounds(ctx, s.p.client.Driver().Admin(), st.Changelog, sl.id.Partition)
			if err != nil {
				return nil, err
			}
			b := bounds[sl.id.Partition]
			if b.HighWatermark <= b.LogStart {
				continue
			}
			if s.p.cfg.lost == FailOnLostOffsets {
				return nil, &kafka.Error{TopicPartition: sl.partition(st.Changelog), Offset: b.HighWatermark, Err: ErrOffsetsLost}
			}
			out[sl] = true
		}
	}
	return out, nil
}

// claim commits the start offsets with this process's mark.
func (s *session) claim(t *takeover, slots []*slot, committed map[kafka.TopicPartition]kafka.CommittedOffset, starts map[kafka.TopicPartition]int64) error {
	offsets := make([]kafka.CommittedOffset, 0, len(starts))
	for _, sl := range slots {
		first := sl.of.spec.Marked()
		for _, topic := range sl.of.spec.Copartitioned() {
			tp := sl.partition(topic)
			start, ok := starts[tp]
			if !ok {
				continue // a joined table: it goes on where it was
			}
			id := s.spec.topics[topic].ID
			o := kafka.CommittedOffset{TopicPartition: tp, Offset: start, LeaderEpoch: -1, Metadata: task.TopicMetadata(id)}
			if topic == first {
				mark, _ := task.DecodeMark(committed[tp].Metadata)
				mark.Topic, mark.Writer, mark.Fingerprint = id, s.process, s.print
				o.Metadata = mark.Encode()
			}
			offsets = append(offsets, o)
		}
	}
	return t.claim.Make(s.lane, offsets, t.seen)
}

// storeStarts takes the ends of the changelogs.
func (s *session) storeStarts(ctx context.Context, g *graph.Graph, out []taken) error {
	for _, st := range g.Stores {
		var bounds map[int32]replica.Bounds
		if st.Changelog != "" {
			var err error
			if bounds, err = s.bounds(ctx, st.Changelog, out); err != nil {
				return err
			}
		}
		for i := range out {
			b := bounds[out[i].slot.id.Partition]
			out[i].start.Stores = append(out[i].start.Stores, task.StoreStart{Bounds: b, MaxBytes: s.spec.maxBytes[st.Changelog], Owned: true})
		}
	}
	return nil
}

// joinStarts says how far the joined tables are restored: to where the group
// has read them, or at its first start to their end or not at all.
func (s *session) joinStarts(t *takeover, out []taken, committed map[kafka.TopicPartition]kafka.CommittedOffset) error {
	for _, j := range t.of.spec.Joins {
		bounds, err := s.bounds(t.ctx, j.Topic, out)
		if err != nil {
			return err
		}
		for i := range out {
			p := out[i].slot.id.Partition
			start := task.JoinStart{Bounds: bounds[p], Target: replica.Target{At: bounds[p].LogStart, Exact: true}}
			if o, ok := committed[out[i].slot.partition(j.Topic)]; ok {
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
		parts[i] = out[i].slot.id.Partition
	}
	return replica.AskBounds(ctx, s.p.client.Driver().Admin(), topic, parts...)
}
