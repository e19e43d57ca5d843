package tester

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
)

// chaosWriter counts to a number, each step in a
// transaction with two partitions and an offset, and keeps to what the
// contract of kafka.Transactor asks for.
type chaosWriter struct {
	*txnRig
	t     *testing.T
	lives int
	next  int64
}

var chaosOps = []Op{OpInitProducer, OpAddPartitions, OpProduce, OpAddOffsets, OpTxnOffsets, OpEndTxn, OpMarker}

// chaosAction draws what happens to a call, mostly nothing.
func chaosAction(r *rand.Rand, op Op) Action {
	d := time.Duration(r.IntN(5000)) * time.Millisecond
	if r.IntN(8) > 0 {
		return Proceed
	}
	if op == OpMarker {
		return Delay(d)
	}
	actions := []Action{Error(kafka.ErrAbortable), ErrorAfter(errors.New("gone")), Lost, Late(d), Delay(d),
		CrashBefore, CrashWithin, CrashAfter}
	return actions[r.IntN(len(actions))]
}

// Whatever is lost, late, refused or dies: all of a step is there once, or
// none of it.
func TestChaosLeavesTransactionsWhole(t *testing.T) {
	hits := map[string]int{}
	for seed := range uint64(150) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { chaosRun(t, seed, hits) })
	}
	for _, op := range chaosOps[:len(chaosOps)-1] {
		for k := failBefore; k <= late; k++ {
			if hits[fmt.Sprint(op, k)] == 0 {
				t.Errorf("%s never met action %d", op, k)
			}
		}
	}
}

func chaosRun(t *testing.T, seed uint64, hits map[string]int) {
	tt := New(t)
	tt.CreateTopic("t", 2)
	r := rand.New(rand.NewPCG(seed, 1))
	calm := false
	tt.Hook(func(c Call) Action {
		if calm {
			return Proceed
		}
		a := chaosAction(r, c.Op)
		hits[fmt.Sprint(c.Op, a.kind)]++
		return a
	})
	w := &chaosWriter{t: t, next: 1}
	w.reborn(tt)
	for range 60 {
		w.whileTimeRuns(w.step)
		if w.inc.isDead() {
			w.reborn(tt)
		}
	}
	tt.Advance(time.Minute) // what is late arrives
	calm = true
	w.reborn(tt)
	w.whileTimeRuns(func() { w.init(t, false) })
	mark := tt.Committed("g", "t", 0)
	if mark < 3 {
		t.Fatalf("counted to %d only", mark)
	}
	for p := range int32(2) {
		rs := tt.Raw("t", p)
		for i, rec := range rs {
			if string(rec.Value) != fmt.Sprint(i+1) {
				t.Fatalf("partition %d: record %d is %s", p, i, rec.Value)
			}
		}
		if int64(len(rs)) != mark {
			t.Fatalf("partition %d holds %d steps, %d are committed", p, len(rs), mark)
		}
	}
}

// reborn starts the process again, in need of the id.
func (w *chaosWriter) reborn(tt *Tester) {
	w.lives++
	w.txnRig = newTxnRig(tt, fmt.Sprint("life", w.lives))
	w.next = 0
}

// step counts one on, or gets into a state from which that is possible. It
// may fail halfway: the next one goes on.
func (w *chaosWriter) step() {
	ctx := context.Background()
	if w.next == 0 { // nothing is known
		err := w.Init(ctx, true)
		if errors.Is(err, kafka.ErrFenced) {
			err = w.Init(ctx, false)
		}
		if err == nil {
			w.next = w.mark() + 1
		}
		return
	}
	w.Begin()
	for p := range int32(2) {
		w.Produce(kafka.Outgoing{TopicPartition: kafka.TopicPartition{Topic: "t", Partition: p},
			Records: []kafka.Record{{Value: fmt.Append(nil, w.next)}}, Done: func(kafka.Run) {}})
	}
	err := w.offset(w.next)
	if err == nil {
		err = w.End(ctx, true)
	}
	switch {
	case err == nil:
		w.next++
	case errors.Is(err, kafka.ErrOutcomeUnknown):
		if err := w.End(ctx, true); err != nil {
			w.next = 0
			return
		}
		w.next++
	default:
		if err := w.End(ctx, false); err != nil {
			w.next = 0
			return
		}
	}
	if w.InDoubt() {
		w.next = 0
	}
}

// mark is what is committed. Nothing is pending once an Init has returned.
func (w *chaosWriter) mark() int64 {
	w.tt.w.mu.Lock()
	defer w.tt.w.mu.Unlock()
	g, tps := w.tt.w.group("g"), []kafka.TopicPartition{{Topic: "t"}}
	if g.isUnstable(tps) {
		w.t.Error("an offset is pending after an initialisation")
	}
	return max(g.committed(tps)[0].Offset, 0)
}
