package processor_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// desk is where callbacks leave records for somebody slow. Numbers above zero
// are deferred, and summed per key and echoed when the test finishes them;
// others are summed at once.
type desk struct {
	t  *testing.T
	tt *tester.Tester
	in *tester.InputTopic[int64]
	p  *processor.Processor // of the instance started last

	callback func(*processor.Context, int64) error // nil: leave

	mu   sync.Mutex
	left map[int64]slip // guarded by mu; the newest one by number
	log  []string       // guarded by mu; what ran, in order
}

// slip is one run of a callback.
type slip struct {
	*processor.Deferred
	apply func(*processor.Context) error
}

func newDesk(t *testing.T, partitions int32) *desk {
	tt := tester.New(t, tester.WithPartitions(partitions), tester.WithLogger(zaptest.NewLogger(t, zaptest.Level(zap.DPanicLevel))))
	d := &desk{t: t, tt: tt, in: tester.Input(tt, numbers), left: map[int64]slip{}}
	tester.Output(tt, echoes)
	tester.Output(tt, dead)
	return d
}

// start starts an instance of group "g" with one more edge, or none.
func (d *desk) start(name string, more processor.Edge, opts ...processor.Option) *tester.Instance {
	return d.tt.Start(name, func(i *tester.Instance) (_ []reka.Runner, err error) {
		sum, out := processor.Persist(sums), processor.Output(echoes)
		edges := []processor.Edge{sum, out, processor.Input(numbers, func(ctx *processor.Context, n int64) error {
			if n > 0 {
				d.notef("run %d", n)
			}
			apply := func(ctx *processor.Context) error {
				d.notef("end %d", n)
				v, _ := sum.Get(ctx)
				sum.Set(ctx, v+n)
				out.Emit(ctx, ctx.Key(), n)
				return nil
			}
			switch {
			case n <= 0:
				return apply(ctx)
			case d.callback != nil:
				return d.callback(ctx, n)
			}
			d.leave(n, slip{ctx.Defer(), apply})
			return nil
		})}
		if more != nil {
			edges = append(edges, more)
		}
		d.p, err = build(i, edges, opts...)
		return []reka.Runner{d.p}, err
	})
}

func (d *desk) notef(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

func (d *desk) leave(n int64, s slip) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left[n] = s
}

// slip returns the newest slip of a number.
func (d *desk) slip(n int64) slip {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.left[n]
	if !ok {
		d.t.Fatalf("%d was not deferred", n)
	}
	return s
}

// finish finishes numbers, one after the other.
func (d *desk) finish(numbers ...int64) {
	d.t.Helper()
	for _, n := range numbers {
		s := d.slip(n)
		s.Finish(s.apply)
		d.tt.Settle()
	}
}

// took returns what ran since the last time.
func (d *desk) took() string {
	d.tt.Settle()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := strings.Join(d.log, ", ")
	d.log = nil
	return s
}

// send sends number n of key k for each "k", n.
func (d *desk) send(keys string, from int64) {
	for i, k := range keys {
		d.in.Send(string(k), from+int64(i))
	}
}

// committed checks the committed position of partition 0.
func (d *desk) committed(want int64) {
	d.t.Helper()
	d.tt.Settle()
	equal(d.t, "committed", d.tt.Committed("g", "numbers", 0), want)
}

// rows checks the table and the outputs, sorted by key and in order.
func (d *desk) rows(want string) {
	d.t.Helper()
	equal(d.t, "rows", strings.TrimPrefix(fmt.Sprint(tester.Table(d.tt, sums).All()), "map"), want)
}

// echoes checks all outputs in order.
func (d *desk) echoes(want string) {
	d.t.Helper()
	equal(d.t, "outputs", join(tester.Output(d.tt, echoes).Values()), want)
}

// numbered returns a record of numbers.
func numbered(key string, n int64) kafka.Record {
	return kafka.Record{Key: []byte(key), Value: fmt.Append(nil, n), Timestamp: 1}
}
