package processor

import (
	"github.com/rekastream/reka/internal/task"
)

// subgraph is a part of the graph as a session runs it.
type subgraph struct {
	*part           // fixed
	env   *task.Env // fixed when the member starts

	// Owned by the session's goroutine.
	partitions int32 // that its inputs have, all of them
	planned    int32 // partitions of the newest plan, as far as it told; 0: unknown
	uneven     bool  // inputs differ, and it was said
}

// named returns the subgraph of a name, nil if this graph has none.
func (s *session) named(name string) *subgraph {
	for _, sg := range s.subgraphs {
		if sg.spec.Subgraph == name {
			return sg
		}
	}
	return nil
}

// newSubgraph makes what the tasks of a part share.
func (s *session) newSubgraph(p *part) *subgraph {
	sg := &subgraph{part: p, partitions: s.spec.partitions[p]}
	cfg := &s.p.cfg
	sg.env = &task.Env{
		Graph: &p.spec, Clock: s.clock, Work: s.work, Log: s.p.log,
		Fetcher: s.fetcher, Restorer: s.restorer, Producer: s.producer, Place: s.p.client.Partitioner(),
		Store: s.store, Lane: s.lane, Disk: s.disk, Fingerprint: s.print,
		Epochs:  s.epochs,
		Outputs: s.spec.targets(p),
		Event:   func(e task.Event) { s.box.Put(message{kind: msgEvent, event: e, of: sg}) },
		Purge:   s.purge,
		Attach:  func(r *task.Record) { r.Attached = newContext(p, r) },
		Holds:   p.holds, Before: p.before, After: p.after, Wall: p.wall, Begin: p.begin, Decodes: p.decodes, Counters: p.counters,
		Ends: s.ends,
		Settings: task.Settings{
			CommitInterval: cfg.commit, EpochBytes: cfg.tuning.EpochBytes, RecordBytes: cfg.tuning.RecordBytes, Unfinished: cfg.tuning.Unfinished,
			CacheBytes: cfg.tuning.CacheBytes, FlushBytes: cfg.tuning.FlushBytes, FlushAge: cfg.tuning.FlushAge, ProcessID: s.process,
			HoldOutputs: cfg.guarantee == ExactlyOnce, IdleTime: cfg.idle,
		},
	}
	var where *placement
	if p.spec.Stateful() {
		where = &placement{place: s.p.client.Partitioner(), partitions: sg.partitions, log: s.p.log}
	}
	for i, h := range p.inputs {
		if p.spec.Inputs[i].Repartition != nil { // its keys lie where this group has put them
			sg.env.Inputs = append(sg.env.Inputs, s.p.handler(h, nil))
			continue
		}
		sg.env.Inputs = append(sg.env.Inputs, s.p.handler(h, where))
	}
	for _, h := range p.joins {
		var f task.Handler
		if h != nil {
			f = s.p.handler(h, nil)
		}
		sg.env.Joins = append(sg.env.Joins, f)
	}
	for _, h := range p.visitors {
		sg.env.Visitors = append(sg.env.Visitors, s.p.handler(h, nil))
	}
	return sg
}

// handler makes what a task calls of a callback: middleware around it, and
// the context that handles act through. where, if not nil, looks at some of
// the records.
func (p *Processor) handler(h handler, where *placement) task.Handler {
	for i := len(p.cfg.middleware) - 1; i >= 0; i-- {
		m, next := p.cfg.middleware[i], h
		h = func(ctx *Context) error { return m(ctx, next) }
	}
	return func(r *task.Record) error {
		ctx := r.Attached.(*Context) // see task.Env.Attach
		if where != nil && ctx.seen&lookEvery == 0 {
			where.look(r)
		}
		ctx.seen++
		return h(ctx)
	}
}
