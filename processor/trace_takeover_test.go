package processor_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// pair starts two instances in a world of one partition and returns the one
// that owns it first.
func (x *exact) pair(opts ...processor.Option) (owner, other *exactNode) {
	x.t.Helper()
	a := x.start("a", opts...)
	x.send("k", "k", "k")
	x.doneWithin(time.Second)
	b := x.start("b", opts...)
	x.tt.Advance(3 * time.Second)
	if x.owner() != "a" {
		x.t.Fatalf("%s is the owner", x.owner())
	}
	return a, b
}

// The scenes, by what happens in them. Each is a schedule on which some weaker
// rule loses or doubles something, or gets stuck.
var scenes = map[string]func(*exact){
	"the answer to an end is lost": func(x *exact) {
		x.pair()
		x.fail("a", tester.OpEndTxn, tester.ErrorAfter(errGone))
		x.send("k")
		x.doneWithin(20 * time.Second)
	},
	"an end is lost": func(x *exact) {
		x.pair()
		x.fail("a", tester.OpEndTxn, tester.Lost)
		x.send("k")
		x.doneWithin(20 * time.Second)
	},
	"an end is late and meets the next transaction": func(x *exact) {
		a, _ := x.pair()
		x.fail("a", tester.OpEndTxn, tester.Late(time.Second))
		x.send("k")
		x.tt.Advance(500 * time.Millisecond)
		x.fail("a", tester.OpTxnOffsets, tester.Delay(time.Hour))
		x.send("k")
		x.tt.Advance(time.Second)
		a.Crash()
		x.doneWithin(20 * time.Second)
	},
	"a visit is written while ends are lost": func(x *exact) {
		a, _ := x.pair(processor.WithTransactionTimeout(time.Second))
		before := x.tt.Calls()[tester.OpEndTxn]
		end := x.during(tester.OpEndTxn, tester.Lost)
		x.touched["k"]++
		done := x.visit(func(ctx context.Context) error {
			_, err := a.touch.Run(ctx, a.p, touchBy)
			return err
		})
		x.advanceUntil("the end of a transaction", func() bool { return x.tt.Calls()[tester.OpEndTxn] > before })
		x.tt.Advance(3 * time.Second)
		end()
		x.advanceUntil("the end of the visit", done)
	},
	// The offsets of a transaction are accepted and its writer is expelled.
	// It joins again and is a member, so nobody fences it, and its commit,
	// which is on its way, still counts: whoever owns the partition next must
	// wait for it.
	"an end is on its way when its writer is expelled": func(x *exact) {
		a, _ := x.pair()
		x.fail("a", tester.OpEndTxn, tester.Delay(5*time.Second))
		x.send("k")
		x.tt.Settle()
		x.tt.Expel("g", a.Instance)
		x.tt.Advance(2 * time.Second)
		x.send("k")
		x.doneWithin(20 * time.Second)
	},
	// The same, but the offsets themselves are on their way: they belong to a
	// generation that is over when they arrive.
	"offsets are on their way when their writer is expelled": func(x *exact) {
		a, _ := x.pair()
		x.fail("a", tester.OpTxnOffsets, tester.Delay(5*time.Second))
		x.send("k")
		x.tt.Settle()
		x.tt.Expel("g", a.Instance)
		x.tt.Advance(2 * time.Second)
		x.send("k")
		x.doneWithin(20 * time.Second)
	},
	// The rows are on their way, behind the offsets.
	"rows are on their way when their writer is expelled": func(x *exact) {
		a, _ := x.pair()
		x.fail("a", tester.OpProduce, tester.Delay(5*time.Second), about("g-table"))
		x.send("k")
		x.tt.Settle()
		x.tt.Expel("g", a.Instance)
		x.tt.Advance(2 * time.Second)
		x.send("k")
		x.doneWithin(20 * time.Second)
	},
	// A transaction is decided, and its markers are not written: neither the
	// group's, without which its offsets are not there, nor the changelog's,
	// without which its rows are not.
	"the markers of a committed transaction are late": func(x *exact) {
		a, _ := x.pair()
		x.tt.Fail(tester.Fault{Op: tester.OpMarker, Group: "g", Do: tester.Delay(6 * time.Second)})
		x.tt.Fail(tester.Fault{Op: tester.OpMarker, Topic: "g-table", Do: tester.Delay(3 * time.Second)})
		x.send("k")
		x.tt.Settle()
		x.tt.Expel("g", a.Instance)
		x.tt.Advance(time.Second)
		x.send("k")
		x.doneWithin(20 * time.Second)
	},
	// Only the changelog's is late: the offsets are there already.
	"rows are decided and not yet stable": func(x *exact) {
		a, _ := x.pair()
		x.tt.Fail(tester.Fault{Op: tester.OpMarker, Topic: "g-table", Do: tester.Delay(6 * time.Second)})
		x.send("k")
		x.tt.Settle()
		x.tt.Expel("g", a.Instance)
		x.tt.Advance(time.Second)
		x.send("k")
		x.doneWithin(20 * time.Second)
	},
	// A partition moves to a new member. Its last owner lives, so nobody fences
	// it, and the rows that it committed last are not yet stable.
	"a partition moves and its rows are not yet stable": func(x *exact) {
		x.start("a")
		x.sendMany(8)
		x.doneWithin(time.Second)
		one := int32(1)
		x.tt.Fail(tester.Fault{Op: tester.OpMarker, Topic: "g-table", Partition: &one, Do: tester.Delay(6 * time.Second)})
		x.sendMany(8)
		x.tt.Advance(time.Second)
		x.start("b")
		x.tt.Advance(time.Second)
		x.sendMany(8)
		x.doneWithin(20 * time.Second)
	},
	// A has an epoch under way, is paused, and sleeps through the tenure of B,
	// which counts the same record, commits, and dies. When A wakes up and
	// gets the partition back its old epoch must be forgotten.
	"an owner sleeps through the tenure of another one": func(x *exact) {
		a, b := x.pair()
		x.fail("a", tester.OpTxnOffsets, tester.Lost, times(2))
		x.fail("a", tester.OpAddOffsets, tester.Delay(time.Second))
		x.send("k")
		x.tt.Settle()
		a.Pause()
		x.tt.Advance(14 * time.Second)
		x.doneWithin(time.Second)
		b.Crash()
		x.tt.Advance(time.Second)
		a.Resume()
		x.tt.Advance(15 * time.Second)
		x.send("k")
		x.doneWithin(20 * time.Second)
	},
	// An owner is expelled with an epoch under way and joins again at once,
	// before anybody has its partition.
	"an owner is expelled and back before the rebalance": func(x *exact) {
		a, b := x.pair()
		x.fail("a", tester.OpProduce, tester.Delay(2*time.Second), about("g-table"))
		x.fail("b", tester.OpSync, tester.Delay(time.Second))
		x.send("k")
		x.tt.Settle()
		x.tt.Expel("g", a.Instance)
		x.tt.Settle()
		x.send("k")
		x.tt.Advance(5 * time.Second)
		b.Crash()
		x.doneWithin(20 * time.Second)
	},
	// The owner misses a generation: it joins, but the assignment does not
	// reach it before the next rebalance.
	"an owner misses a generation": func(x *exact) {
		a, b := x.pair()
		x.fail("a", tester.OpProduce, tester.Delay(3*time.Second), about("g-table"))
		x.send("k")
		x.tt.Settle()
		x.fail("a", tester.OpSync, tester.Delay(2*time.Second))
		x.tt.Rebalance("g")
		x.tt.Advance(time.Second)
		x.tt.Rebalance("g")
		x.tt.Advance(1500 * time.Millisecond)
		x.tt.Expel("g", a.Instance)
		x.send("k")
		x.tt.Advance(time.Second)
		x.tt.Expel("g", b.Instance)
		x.doneWithin(time.Minute)
	},
	// Two partitions; one moves to a new member while both have an epoch under
	// way, and the owner stands still until the rebalance has timed out.
	"a partition is revoked of an owner that stands still": func(x *exact) {
		short := []processor.Option{processor.WithSessionTimeout(5 * time.Second), processor.WithRebalanceTimeout(5 * time.Second)}
		a := x.start("a", short...)
		x.sendMany(8)
		x.doneWithin(time.Second)
		x.fail("a", tester.OpTxnOffsets, tester.Delay(time.Second))
		x.sendMany(8)
		x.tt.Settle()
		x.start("b", short...)
		a.Pause()
		x.tt.Advance(8 * time.Second)
		a.Resume()
		x.sendMany(8)
		x.doneWithin(time.Minute)
	},
	// The first owner dies in its claim: there is a pending offset and no mark
	// that names its writer.
	"the first owner dies in its claim": func(x *exact) {
		x.fail("a", tester.OpEndTxn, tester.CrashBefore)
		x.start("a")
		x.start("b")
		x.send("k")
		x.doneWithin(14 * time.Second)
	},
	// The mark names the owner before the one that died in its claim, whose
	// disk is lost.
	"the next owner dies in its claim as well": func(x *exact) {
		a, b := x.pair()
		x.fail("a", tester.OpTxnOffsets, tester.CrashAfter)
		x.send("k")
		x.tt.Settle()
		x.fail("b", tester.OpTxnOffsets, tester.CrashAfter)
		x.tt.Advance(12 * time.Second)
		if !a.Crashed() || !b.Crashed() {
			x.t.Fatal("they live")
		}
		x.start("c")
		x.doneWithin(14 * time.Second)
		b.format()
		a.Restart()
		b.Restart()
		x.send("k")
		x.doneWithin(30 * time.Second)
	},
	// A writer dies while it is still a member: who gets its partition, when
	// its session is over, must look for it again.
	"a writer's session is over after the takeover has begun": func(x *exact) {
		x.pair()
		x.fail("a", tester.OpTxnOffsets, tester.CrashAfter)
		x.send("k")
		x.tt.Settle()
		x.tt.Rebalance("g")
		x.doneWithin(14 * time.Second)
	},
	// A process dies in a transaction, comes back with an empty disk under
	// another name, dies again before it is heard of.
	"a process dies twice and loses its disk": func(x *exact) {
		a, _ := x.pair()
		x.fail("a", tester.OpTxnOffsets, tester.CrashAfter)
		x.send("k")
		x.tt.Settle()
		a.format()
		x.fail("a", tester.OpSync, tester.CrashBefore)
		a.Restart()
		x.tt.Advance(11 * time.Second)
		if !a.Crashed() {
			x.t.Fatal("it lives")
		}
		x.doneWithin(14 * time.Second)
	},
	// A static member is killed in the middle of a join and comes back: the
	// partition that it held must not stay without an owner.
	"a static member is killed in a join and comes back": func(x *exact) {
		a, _ := x.pair()
		x.tt.Rebalance("g")
		x.fail("a", tester.OpSync, tester.CrashBefore)
		x.tt.Settle()
		if !a.Crashed() {
			x.t.Fatal("it lives")
		}
		a.Restart()
		x.send("k")
		x.doneWithin(15 * time.Second)
	},
	// The other way round: it is killed before anybody else has joined.
	"a static member is killed before the join and comes back": func(x *exact) {
		a, b := x.pair()
		x.fail("b", tester.OpJoin, tester.Delay(2*time.Second))
		x.tt.Rebalance("g")
		a.Crash()
		a.Restart()
		x.send("k")
		x.tt.Advance(3 * time.Second)
		x.doneWithin(15 * time.Second)
		_ = b
	},
	// A fence order is carried out when its target is back: a zombie's
	// request, or that of a member that knew an old assignment.
	"a fence order is late": func(x *exact) {
		a, _ := x.pair()
		x.fail("b", tester.OpInitProducer, tester.Late(20*time.Second))
		x.fail("a", tester.OpTxnOffsets, tester.CrashAfter)
		x.send("k")
		x.tt.Advance(12 * time.Second)
		a.Restart()
		for range 15 {
			x.send("k")
			x.tt.Advance(time.Second)
		}
		x.doneWithin(20 * time.Second)
	},
	// A zombie initialises its id again after its partition was taken over.
	"a zombie initialises again": func(x *exact) {
		a, b := x.pair()
		x.fail("a", tester.OpTxnOffsets, tester.Lost)
		x.send("k")
		x.tt.Settle()
		a.Pause()
		x.tt.Advance(14 * time.Second)
		x.doneWithin(time.Second)
		a.Resume()
		x.send("k")
		x.tt.Advance(5 * time.Second)
		x.tt.Expel("g", b.Instance)
		x.send("k")
		x.doneWithin(20 * time.Second)
	},
}

func TestScenes(t *testing.T) {
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) { newExact(t, sceneSize(name)).play(scene) })
	}
}

func sceneSize(scene string) int32 {
	switch scene {
	case "a partition is revoked of an owner that stands still", "a partition moves and its rows are not yet stable":
		return 2
	}
	return 1
}

// play runs a scene, and checks the world when all that was late has arrived.
func (x *exact) play(scene func(*exact)) {
	x.t.Helper()
	scene(x)
	x.tt.Advance(30 * time.Second)
	x.send("k")
	x.doneWithin(20 * time.Second)
	x.check()
}

// The same happens to a partition over and over again.
func TestPartitionThatIsThrownAbout(t *testing.T) {
	for _, op := range []tester.Op{tester.OpAddPartitions, tester.OpProduce, tester.OpAddOffsets, tester.OpTxnOffsets, tester.OpEndTxn, tester.OpMarker} {
		t.Run(fmt.Sprint(op), func(t *testing.T) {
			x := newExact(t, 1)
			a, b := x.pair()
			for i := range 20 {
				x.tt.Fail(tester.Fault{Op: op, Do: tester.Delay(time.Duration(1+i%4) * time.Second)})
				x.send("k", "k")
				x.tt.Advance(time.Duration(i%3) * 700 * time.Millisecond)
				x.tt.Expel("g", []*exactNode{a, b}[i%2].Instance)
				x.tt.Advance(time.Duration(1+i%5) * 400 * time.Millisecond)
			}
			x.doneWithin(30 * time.Second)
			x.check()
			x.alive("a", "b")
		})
	}
}
