package processor_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/tester"
)

var (
	echoesText = reka.NewStream("echoes", codec.Int64Text())
	touches    = reka.NewStream("touches", codec.Int64())
)

// exact is a world in which numbers are counted per key and echoed, exactly
// once unless options say otherwise. The numbers of a key are 1, 2, 3…, so
// that whatever is lost or repeated shows at once.
type exact struct {
	t          testing.TB
	tt         *tester.Tester
	in         *tester.InputTopic[int64]
	partitions int32
	sent       map[string]int64
	touched    map[string]int64
	nodes      map[string]*exactNode
	fault      *planted

	mu    sync.Mutex
	calls map[string]int // guarded by mu; of the callback, by instance
	last  string         // guarded by mu; the instance whose callback ran last
	hold  func(*processor.Context, int64) error
	wrong []string // guarded by mu; what callbacks found
}

// exactNode is an instance with its disk.
type exactNode struct {
	*tester.Instance
	p     *processor.Processor
	disk  storage.Builder
	disks int
	rows  *processor.Visits[*seenRows]
	touch *processor.Visits[int]
}

func newExact(t testing.TB, partitions int32) *exact {
	tt := tester.New(t, tester.WithPartitions(partitions), tester.WithLogger(zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))))
	x := &exact{
		t: t, tt: tt, in: tester.Input(tt, numbers), partitions: partitions, sent: map[string]int64{}, touched: map[string]int64{},
		nodes: map[string]*exactNode{}, calls: map[string]int{},
	}
	tester.Output(tt, echoesText)
	tester.Output(tt, touches)
	tester.Output(tt, dead)
	return x
}

// start starts an instance of group "g".
func (x *exact) start(name string, opts ...processor.Option) *exactNode {
	x.t.Helper()
	n := &exactNode{disk: newDisk(name)}
	x.nodes[name] = n
	n.Instance = x.tt.Start(name, func(i *tester.Instance) (_ []reka.Runner, err error) {
		client := i.Client()
		if x.fault != nil {
			if client, err = x.fault.client(i); err != nil {
				return nil, err
			}
		}
		g, err := processor.NewGraph("g", x.edges(name, n)...)
		if err != nil {
			return nil, err
		}
		n.p, err = processor.New(client, g, append([]processor.Option{
			processor.WithStorage(i.Guard(n.disk)), processor.WithGuarantee(processor.ExactlyOnce),
			processor.WithTuning(processor.Tuning{FlushBytes: 1}),
		}, opts...)...)
		return []reka.Runner{n.p}, err
	})
	return n
}

func (x *exact) edges(name string, n *exactNode) []processor.Edge {
	sum, out, touched := processor.Persist(sums), processor.Output(echoesText), processor.Output(touches)
	n.rows = processor.Visitor("rows", func(ctx *processor.Context, all *seenRows) error {
		v, _ := sum.Get(ctx)
		all.set(ctx.Key(), fmt.Sprint(v))
		return nil
	})
	n.touch = processor.Visitor("touch", func(ctx *processor.Context, by int) error {
		v, _ := sum.Get(ctx)
		sum.Set(ctx, v+int64(by))
		touched.Emit(ctx, ctx.Key(), v+int64(by))
		return nil
	})
	return []processor.Edge{sum, out, touched, n.rows, n.touch, processor.Input(numbers, func(ctx *processor.Context, v int64) error {
		x.mu.Lock()
		x.calls[name]++
		x.last = name
		hold := x.hold
		x.mu.Unlock()
		if hold != nil {
			if err := hold(ctx, v); err != nil {
				return err
			}
		}
		had, _ := sum.Get(ctx)
		if had%touchBy != v-1 {
			x.mu.Lock()
			x.wrong = append(x.wrong, fmt.Sprintf("%s: number %d of %s meets %d", name, v, ctx.Key(), had))
			x.mu.Unlock()
		}
		sum.Set(ctx, had+1)
		out.Emit(ctx, ctx.Key(), v)
		return nil
	})}
}

// touchBy is what a touch adds to a row: more than all numbers together.
const touchBy = 1_000_000

// send sends the next number of each of the given keys.
func (x *exact) send(keys ...string) {
	x.t.Helper()
	for _, k := range keys {
		x.sent[k]++
		x.in.Send(k, x.sent[k])
	}
}

// sendMany sends n numbers, on eight keys in turn.
func (x *exact) sendMany(n int) {
	x.t.Helper()
	for i := range n {
		x.send(fmt.Sprint("k", i%8))
	}
}

// fail adds a fault of one instance.
func (x *exact) fail(name string, op tester.Op, do tester.Action, more ...func(*tester.Fault)) {
	f := tester.Fault{Op: op, Instance: name, Do: do}
	for _, m := range more {
		m(&f)
	}
	x.tt.Fail(f)
}

// during does something to all calls of a kind until it is ended.
func (x *exact) during(op tester.Op, do tester.Action) (end func()) {
	var over atomic.Bool
	x.tt.Hook(func(c tester.Call) tester.Action {
		if c.Op == op && !over.Load() {
			return do
		}
		return tester.Proceed
	})
	return func() { over.Store(true) }
}

// Terms of faults.
func times(n int) func(*tester.Fault)        { return func(f *tester.Fault) { f.Times = n } }
func about(topic string) func(*tester.Fault) { return func(f *tester.Fault) { f.Topic = topic } }

// count returns how often callbacks ran on an instance.
func (x *exact) count(name string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.calls[name]
}

// format gives an instance an empty disk at its next start.
func (n *exactNode) format() {
	n.disks++
	n.disk = newDisk(fmt.Sprint(n.Name(), ".", n.disks))
}

// done reports whether all that was sent is committed.
func (x *exact) done() bool {
	total := int64(0)
	for p := range x.partitions {
		total += max(x.tt.Committed("g", "numbers", p), 0)
	}
	want := int64(0)
	for _, n := range x.sent {
		want += n
	}
	return total == want
}

// doneWithin lets time pass until all is committed, at most d.
func (x *exact) doneWithin(d time.Duration) {
	x.t.Helper()
	const step = 100 * time.Millisecond
	for until := x.tt.Now().Add(d); !x.done(); x.tt.Advance(step) {
		if !x.tt.Now().Before(until) {
			x.t.Errorf("not all is committed after %s", d)
			return
		}
	}
}

// serving lets time pass until all instances serve that have not ended, at
// most half a minute.
func (x *exact) serving() {
	x.t.Helper()
	for range 30 {
		ready := true
		for _, n := range x.nodes {
			ready = ready && (n.Err() != nil || n.p.Ready())
		}
		if ready {
			return
		}
		x.tt.Advance(time.Second)
	}
	x.t.Error("not all instances serve")
}

// check compares outputs, table and the owners' rows with what was sent.
func (x *exact) check() {
	x.t.Helper()
	if !x.done() {
		x.t.Error("not all is committed")
		return
	}
	x.serving()
	x.mu.Lock()
	for _, w := range x.wrong {
		x.t.Error(w)
	}
	x.mu.Unlock()
	next := map[string]int64{}
	for _, r := range tester.Output(x.tt, echoesText).All() {
		if next[r.Key]++; r.Value != next[r.Key] {
			x.t.Errorf("output %d of %s at %d/%d, want %d", r.Value, r.Key, r.Partition, r.Offset, next[r.Key])
		}
	}
	if !maps.Equal(next, x.sent) {
		x.t.Errorf("outputs have come to %v, sent were %v", next, x.sent)
	}
	seen := map[string]int64{}
	for _, r := range tester.Output(x.tt, touches).All() {
		seen[r.Key]++
	}
	if !maps.Equal(seen, x.touched) {
		x.t.Errorf("readers see touches %v, want %v", seen, x.touched)
	}
	want := map[string]string{}
	for k, n := range x.sent {
		want[k] = fmt.Sprint(n + x.touched[k]*touchBy)
	}
	table := map[string]string{}
	for k, n := range tester.Table(x.tt, sums).All() {
		table[k] = fmt.Sprint(n)
	}
	if !maps.Equal(table, want) {
		x.t.Errorf("the table holds %v, want %v", table, want)
	}
	x.checkOwners(want)
}

// visit starts f, which must not fail, and returns what tells whether it has
// ended.
func (x *exact) visit(f func(context.Context) error) (done func() bool) {
	ended := make(chan error, 1)
	go func() { ended <- f(x.t.Context()) }() // ends with the visit, at the latest with the test
	return func() bool {
		select {
		case err := <-ended:
			if err != nil {
				x.t.Errorf("visit: %v", err)
			}
			return true
		default:
			return false
		}
	}
}

// advanceUntil lets time pass until a condition holds, at most a minute.
func (x *exact) advanceUntil(what string, f func() bool) {
	x.t.Helper()
	for range 6000 {
		if f() {
			return
		}
		x.tt.Advance(10 * time.Millisecond)
	}
	x.t.Errorf("%s does not come", what)
}

// checkOwners compares the rows that the owners hold.
func (x *exact) checkOwners(want map[string]string) {
	x.t.Helper()
	got := &seenRows{rows: map[string]string{}}
	for name, n := range x.nodes {
		if n.Err() != nil {
			continue
		}
		x.advanceUntil("the end of a visit of "+name, x.visit(func(ctx context.Context) error {
			_, err := n.rows.Run(ctx, n.p, got)
			return err
		}))
	}
	if !maps.Equal(got.rows, want) {
		x.t.Errorf("owners hold %v, want %v", got.rows, want)
	}
}

// transactions notes the transactional ids of instances from now on.
func (x *exact) transactions() func(instance string) string {
	var mu sync.Mutex
	ids := map[string]string{}
	x.tt.Hook(func(c tester.Call) tester.Action {
		if c.Op == tester.OpEndTxn {
			mu.Lock()
			defer mu.Unlock()
			ids[c.Instance] = c.Transaction
		}
		return tester.Proceed
	})
	return func(instance string) string {
		mu.Lock()
		defer mu.Unlock()
		return ids[instance]
	}
}

// alive checks that instances serve.
func (x *exact) alive(names ...string) {
	x.t.Helper()
	for _, name := range names {
		if err := x.nodes[name].Err(); err != nil {
			x.t.Errorf("%s: %v", name, err)
		} else if s := x.nodes[name].p.Status().String(); s != "serving" {
			x.t.Errorf("%s is %s", name, s)
		}
	}
}

// guarantees are all of them by name.
var guarantees = map[string]processor.Guarantee{
	"exactly once": processor.ExactlyOnce, "at least once": processor.AtLeastOnce, "without transactions": processor.WithoutTransactions,
}

// join returns values as one string.
func join[T any](vs []T) string { return strings.Trim(fmt.Sprint(vs), "[]") }
