package processor_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
)

// The chain under chaos: orders → tally → changes → ledger, with a join, a
// lookup, a loop, further stores and views of both tables. The values of an
// order are 1, 2, 3… for each key, so every stage can tell a lost record from
// a repeated one.
var (
	orders     = reka.NewStream("orders", codec.Int64())
	changes    = reka.NewStream("changes", codec.Int64())
	tallyTable = reka.GroupTable("tally", codec.String())
	sumTable   = reka.GroupTable("sum", codec.Int64())
	prices     = reka.NewTable("prices", codec.Int64())
	whoIsWho   = reka.NewTable("names", codec.String())
)

// complaints are what callbacks found to be wrong.
type complaints struct {
	mu  sync.Mutex
	all []string // guarded by mu
}

func (c *complaints) addf(format string, a ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprintf(format, a...))
}

func (c *complaints) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// node is one instance of the chain: a process with a disk of its own.
type node struct {
	*tester.Instance
	name   string
	disk   storage.Builder
	p      *processor.Processor
	tally  *view.View[string]
	sum    *view.View[int64]
	visits *processor.Visits[*seenRows]
	paused bool
}

// seenRows are rows that visitors of several partitions found.
type seenRows struct {
	mu   sync.Mutex
	rows map[string]string // guarded by mu
}

func (f *seenRows) set(key, row string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[key] = row
}

// tallyRow is a row of the tally: the offset of the last record counted in,
// which makes counting repeatable, and the count.
func tallyRow(s string) (last, n int64) {
	a, b, _ := strings.Cut(s, ":")
	last, _ = strconv.ParseInt(a, 10, 64)
	n, _ = strconv.ParseInt(b, 10, 64)
	return last, n
}

// tallyEdges counts orders per key and sends them on; every fifth goes
// through the loop to another key too.
func (nd *node) tallyEdges(c *complaints) []processor.Edge {
	n, out := processor.Persist(tallyTable), processor.Output(changes)
	loop, seen := processor.Loop(codec.Int64()), processor.Store("seen", codec.Int64())
	nd.visits = processor.Visitor("rows", func(ctx *processor.Context, all *seenRows) error {
		row, _ := n.Get(ctx)
		all.set(ctx.Key(), row)
		return nil
	})
	return []processor.Edge{n, out, seen, nd.visits,
		processor.Input(orders, func(ctx *processor.Context, v int64) error {
			last, count := int64(-1), int64(0)
			if row, ok := n.Get(ctx); ok {
				last, count = tallyRow(row)
			}
			if ctx.Offset() > last {
				if v != count+1 && ctx.Failed() == nil {
					c.addf("%s: order %d of key %s at %d meets a count of %d up to %d", nd.name, v, ctx.Key(), ctx.Offset(), count, last)
				}
				n.Set(ctx, fmt.Sprintf("%d:%d", ctx.Offset(), v))
			}
			out.Emit(ctx, ctx.Key(), v)
			if v%5 == 0 {
				loop.Emit(ctx, "loop-"+ctx.Key(), v)
			}
			return nil
		}),
		loop.On(func(ctx *processor.Context, v int64) error {
			seen.Set(ctx, fmt.Sprintf("%s/%d", ctx.Key(), v), v)
			return nil
		})}
}

// sumEdges follows the changes with a joined and a looked up table.
func (nd *node) sumEdges(c *complaints, first bool) []processor.Edge {
	m, ledger := processor.Persist(sumTable), processor.Store("ledger", codec.Int64())
	price, name := processor.Join(prices), processor.Lookup(whoIsWho)
	if first {
		price = processor.Join(prices, processor.TableFirst())
	}
	nd.visits = processor.Visitor("rows", func(ctx *processor.Context, all *seenRows) error {
		n, _ := m.Get(ctx)
		all.set(ctx.Key(), fmt.Sprint(n))
		return nil
	})
	return []processor.Edge{m, ledger, price, name, nd.visits, processor.Input(changes, func(ctx *processor.Context, v int64) error {
		highest, _ := m.Get(ctx)
		if v > highest+1 && ctx.Failed() == nil {
			c.addf("%s: change %d of key %s at %s/%d@%d follows %d", nd.name, v, ctx.Key(), ctx.Topic(), ctx.Partition(), ctx.Offset(), highest)
		}
		if v > highest {
			m.Set(ctx, v)
		}
		p, _ := price.Get(ctx)
		ledger.Set(ctx, fmt.Sprintf("%s/%d", ctx.Key(), v), p)
		if _, ok := name.Get(ctx, ctx.Key()); !ok && ctx.Failed() == nil {
			c.addf("%s: lookup has no %s", nd.name, ctx.Key())
		}
		return nil
	})}
}

// terms are what a schedule varies of the processors.
type terms struct {
	dynamic, first bool
	tuning         processor.Tuning
	commit         time.Duration
}

func (nd *node) build(group string, tr terms, c *complaints) func(*tester.Instance) ([]reka.Runner, error) {
	return func(i *tester.Instance) ([]reka.Runner, error) {
		disk := i.Guard(nd.disk)
		if group == "" {
			return nd.buildViews(i, disk)
		}
		edges := nd.tallyEdges
		if group == "sum" {
			edges = func(c *complaints) []processor.Edge { return nd.sumEdges(c, tr.first) }
		}
		g, err := processor.NewGraph(group, edges(c)...)
		if err != nil {
			return nil, err
		}
		opts := []processor.Option{processor.WithStorage(disk), processor.WithTuning(tr.tuning), processor.WithCommitInterval(tr.commit)}
		if tr.dynamic {
			opts = append(opts, processor.WithDynamicMembership())
		}
		nd.p, err = processor.New(i.Client(), g, opts...)
		return []reka.Runner{nd.p}, err
	}
}

func (nd *node) buildViews(i *tester.Instance, disk storage.Builder) ([]reka.Runner, error) {
	var err error
	if nd.tally, err = view.New(i.Client(), tallyTable, view.WithStorage(disk)); err != nil {
		return nil, err
	}
	nd.sum, err = view.New(i.Client(), sumTable, view.WithStorage(disk))
	return []reka.Runner{nd.tally, nd.sum}, err
}

// ready reports whether everything on the node serves.
func (nd *node) ready() bool {
	if nd.p != nil {
		return nd.p.Ready()
	}
	return nd.tally.Ready() && nd.sum.Ready()
}

// state tells where the node stands, for failures.
func (nd *node) state() string {
	if nd.p == nil {
		return fmt.Sprintf("views %v and %v", nd.tally.State(), nd.sum.State())
	}
	s := nd.p.Status().String()
	for _, t := range nd.p.Stats().Partitions {
		s += fmt.Sprintf(", partition %d %s", t.Partition, t.State)
	}
	return s
}
