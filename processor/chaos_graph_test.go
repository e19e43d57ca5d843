package processor_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
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
	disks  int // that it has lost
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
// through the loop to another key too. With transactions an order that is
// counted twice, or counted on rows that are not its predecessors', is a fault.
func (nd *node) tallyEdges(tr terms, c *complaints) []processor.Edge {
	n, out := processor.Persist(tallyTable), processor.Output(changes)
	loop, seen := processor.Loop(codec.Int64()), processor.Store("seen", codec.Int64())
	exact := tr.exactState("tally")
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
			again := ctx.Offset() <= last
			if (again && exact || !again && v != count+1) && ctx.Failed() == nil {
				c.addf("%s: order %d of key %s at %d meets a count of %d up to %d", nd.name, v, ctx.Key(), ctx.Offset(), count, last)
			}
			if !again {
				n.Set(ctx, fmt.Sprintf("%d:%d", ctx.Offset(), v))
			}
			out.Emit(ctx, ctx.Key(), v)
			if v%5 == 0 {
				loop.Emit(ctx, "loop-"+ctx.Key(), v)
			}
			return nil
		}),
		loop.On(func(ctx *processor.Context, v int64) error {
			key := fmt.Sprintf("%s/%d", ctx.Key(), v)
			if _, ok := seen.Get(ctx, key); ok && tr.exactOutputs("tally") && ctx.Failed() == nil {
				c.addf("%s: the loop brings %s again", nd.name, key)
			}
			seen.Set(ctx, key, v)
			return nil
		})}
}

// ledgerRows is how many of the last changes of a key the ledger keeps.
const ledgerRows = 7

// sumEdges follows the changes with a joined and a looked up table. The ledger
// holds the last changes of each key; hits counts the changes that were seen,
// repeated ones included.
func (nd *node) sumEdges(tr terms, c *complaints) []processor.Edge {
	m, ledger, hits := processor.Persist(sumTable), processor.Store("ledger", codec.Int64()), processor.Store("hits", codec.Int64())
	price, name := processor.Join(prices), processor.Lookup(whoIsWho)
	if tr.first {
		price = processor.Join(prices, processor.TableFirst())
	}
	exact := tr.exactState("sum") && tr.exactOutputs("tally")
	nd.visits = processor.Visitor("rows", func(ctx *processor.Context, all *seenRows) error {
		n, _ := m.Get(ctx)
		all.set(ctx.Key(), fmt.Sprint(n))
		for v := range n + 1 {
			k := fmt.Sprintf("%s/%d", ctx.Key(), v)
			if row, ok := ledger.Get(ctx, k); ok {
				all.set(k, fmt.Sprint(row))
			}
		}
		return nil
	})
	return []processor.Edge{m, ledger, hits, price, name, nd.visits, processor.Input(changes, func(ctx *processor.Context, v int64) error {
		highest, _ := m.Get(ctx)
		if (v > highest+1 || exact && v != highest+1) && ctx.Failed() == nil {
			c.addf("%s: change %d of key %s at %s/%d@%d follows %d", nd.name, v, ctx.Key(), ctx.Topic(), ctx.Partition(), ctx.Offset(), highest)
		}
		if v > highest {
			m.Set(ctx, v)
		}
		n, _ := hits.Get(ctx, ctx.Key())
		hits.Set(ctx, ctx.Key(), n+1)
		p, _ := price.Get(ctx)
		ledger.Set(ctx, fmt.Sprintf("%s/%d", ctx.Key(), v), p)
		ledger.Delete(ctx, fmt.Sprintf("%s/%d", ctx.Key(), v-ledgerRows))
		if _, ok := name.Get(ctx, ctx.Key()); !ok && ctx.Failed() == nil {
			c.addf("%s: lookup has no %s", nd.name, ctx.Key())
		}
		return nil
	})}
}

// terms are what a schedule varies of the processors.
type terms struct {
	dynamic, first bool
	tally, sum     processor.Guarantee
	tuning         processor.Tuning
	commit         time.Duration
	transaction    time.Duration
}

func (tr terms) guarantee(group string) processor.Guarantee {
	if group == "sum" {
		return tr.sum
	}
	return tr.tally
}

// exactState says that nothing is ever counted twice into a group's tables.
func (tr terms) exactState(group string) bool {
	return tr.guarantee(group) != processor.WithoutTransactions
}

// exactOutputs says that readers see each output of a group once.
func (tr terms) exactOutputs(group string) bool { return tr.guarantee(group) == processor.ExactlyOnce }

// build makes the runners of one instance.
func (nd *node) build(group string, tr terms, c *chaos) func(*tester.Instance) ([]reka.Runner, error) {
	return func(i *tester.Instance) ([]reka.Runner, error) {
		client, disk, err := c.plant(i, nd.disk)
		if err != nil {
			return nil, err
		}
		if group == "" {
			return nd.buildViews(client, disk)
		}
		edges := nd.tallyEdges
		if group == "sum" {
			edges = nd.sumEdges
		}
		g, err := processor.NewGraph(group, edges(tr, c.c)...)
		if err != nil {
			return nil, err
		}
		opts := []processor.Option{
			processor.WithStorage(disk), processor.WithTuning(tr.tuning), processor.WithCommitInterval(tr.commit),
			processor.WithGuarantee(tr.guarantee(group)), processor.WithTransactionTimeout(tr.transaction),
		}
		if tr.dynamic {
			opts = append(opts, processor.WithDynamicMembership())
		}
		nd.p, err = processor.New(client, g, opts...)
		return []reka.Runner{nd.p}, err
	}
}

// disk is a storage in memory whose process id says whose it is: a random one
// would order things in another way on every run.
type disk struct {
	storage.Builder
	id string
}

func newDisk(name string) storage.Builder {
	// A number apart: what an earlier test left behind has no say in this one.
	// Process ids have no hyphens.
	return &disk{storage.Memory(), fmt.Sprintf("%s.%09d", name, disks.Add(1))}
}

var disks atomic.Int64

// Open implements storage.Builder.
func (d *disk) Open() (storage.Store, error) {
	s, err := d.Builder.Open()
	return &namedStore{s, d.id}, err
}

type namedStore struct {
	storage.Store
	id string
}

// ProcessID implements storage.Store.
func (s *namedStore) ProcessID() string { return s.id }

func (nd *node) buildViews(client *kafka.Client, disk storage.Builder) ([]reka.Runner, error) {
	var err error
	if nd.tally, err = view.New(client, tallyTable, view.WithStorage(disk)); err != nil {
		return nil, err
	}
	nd.sum, err = view.New(client, sumTable, view.WithStorage(disk))
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
