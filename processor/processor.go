package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/internal/work"
	"github.com/rekastream/reka/kafka"
)

// Processor runs a graph as one member of its group. Start as many as there
// are partitions, in as many processes: each gets its part of them.
type Processor struct {
	client *kafka.Client
	graph  *Graph
	cfg    config
	log    *zap.Logger

	mu      sync.Mutex
	ran     bool
	status  Status
	changed chan struct{} // closed and replaced with each change of status
	err     error         // of Run, once it has ended
	session *session      // while Run runs
	counts  counts        // of topics, once they were looked at
}

// New returns a processor. It validates and does not dial.
func New(c *kafka.Client, g *Graph, opts ...Option) (*Processor, error) {
	if c == nil || g == nil || len(g.parts) == 0 {
		return nil, errors.New("processor: New needs a client and a graph")
	}
	p := &Processor{client: c, graph: g, cfg: defaultConfig(), changed: make(chan struct{})}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("processor %s: a nil option", g.group)
		}
		o.apply(&p.cfg)
	}
	if err := p.cfg.validate(g.stateful()); err != nil {
		return nil, placed(g.group, err)
	}
	p.log = p.cfg.log
	if p.log == nil {
		p.log = c.Logger()
	}
	return p, nil
}

// Run joins the group and processes until ctx ends; then it finishes the
// records in hand, commits, leaves the group and returns nil, or
// reka.ErrStopTimeout if that took longer than the stop timeout. Trouble of
// the network is retried for ever. What is not worth retrying is returned:
// refused credentials or rights, topics that do not fit, a record that fails
// and whose policy says Fail, a store that fails. Run is called once.
func (p *Processor) Run(ctx context.Context) error {
	p.mu.Lock()
	if p.ran {
		p.mu.Unlock()
		return ErrRunTwice
	}
	p.ran = true
	s := newSession(p)
	p.session = s
	p.mu.Unlock()

	done := make(chan error, 1)
	work.Go(p.client.Driver().Work(), func() { done <- s.run(ctx) }) // waited for here
	err := placed(p.graph.group, <-done)

	p.mu.Lock()
	p.err = err
	p.session = nil
	p.mu.Unlock()
	p.setStatus(Stopped)
	return err
}

// Ready reports whether all partitions that this instance has are restored
// and read their inputs. A member without partitions is ready.
func (p *Processor) Ready() bool { return p.Status() == Serving }

// Status returns what the processor is doing.
func (p *Processor) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// WaitReady waits until the processor is ready. It returns Run's error, or
// ErrStopped, if Run has ended, and ctx's error if that ended.
func (p *Processor) WaitReady(ctx context.Context) error {
	for {
		p.mu.Lock()
		status, changed, err := p.status, p.changed, p.err
		p.mu.Unlock()
		switch {
		case status == Serving:
			return nil
		case status == Stopped && err != nil:
			return err
		case status == Stopped:
			return ErrStopped
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// setStatus is called on the session's goroutine, and at the end of Run.
func (p *Processor) setStatus(s Status) {
	p.mu.Lock()
	if p.status == s {
		p.mu.Unlock()
		return
	}
	p.status = s
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	if p.cfg.observer.State != nil {
		p.cfg.observer.State(s)
	}
}

// Stats returns a snapshot of what the processor does and has done.
func (p *Processor) Stats() Stats {
	p.mu.Lock()
	s, status := p.session, p.status
	p.mu.Unlock()
	out := Stats{Group: p.graph.group, Status: status}
	if s == nil {
		return out
	}
	for _, t := range s.snapshot() {
		out.Partitions = append(out.Partitions, newPartitionStats(t.of, t.task.Stats()))
	}
	return out
}

// visitCall is a visitor, by its index in its part, and what it is run with.
type visitCall struct {
	visitor int
	arg     any
}

// visit runs a visitor of a part over the tasks that there are.
func (p *Processor) visit(ctx context.Context, of *part, call *visitCall) (int64, error) {
	p.mu.Lock()
	s := p.session
	p.mu.Unlock()
	if s == nil {
		return 0, placed(p.graph.group, ErrStopped)
	}
	var tasks []*task.Task
	for _, t := range s.snapshot() {
		if t.of == of {
			tasks = append(tasks, t.task)
		}
	}
	if len(tasks) == 0 {
		return 0, nil
	}
	type result struct {
		n   int64
		err error
	}
	done := make(chan result, 1) // one answer, which may come after ctx ended
	v := task.NewVisit(call.visitor, call.arg, tasks, func(n int64, err error) { done <- result{n, err} })
	for _, t := range tasks {
		t.Visit(v)
	}
	select {
	case r := <-done:
		return r.n, placed(p.graph.group, r.err)
	case <-ctx.Done():
		return v.Cancel(), ctx.Err()
	}
}
