package processor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// A rebalance comes while a transaction is under way. The epochs of tasks that
// stay are committed in the new generation, as they are: no callback runs
// again.
func TestEpochsOfTasksThatStayOutliveARebalance(t *testing.T) {
	for _, op := range []tester.Op{tester.OpAddPartitions, tester.OpProduce, tester.OpAddOffsets, tester.OpTxnOffsets, tester.OpEndTxn} {
		for _, how := range []string{"asked for", "by a new member", "by one that leaves"} {
			t.Run(fmt.Sprint(op, " ", how), func(t *testing.T) {
				x := newExact(t, 4)
				x.start("a")
				if how == "by one that leaves" {
					x.start("b")
				}
				x.sendMany(16)
				x.doneWithin(5 * time.Second)
				before := x.count("a") + x.count("b")
				x.fail("a", op, tester.Delay(2*time.Second))
				x.sendMany(16)
				x.tt.Settle()
				switch how {
				case "asked for":
					x.tt.Rebalance("g")
				case "by a new member":
					x.start("b")
				default:
					if err := x.nodes["b"].Stop(); err != nil {
						t.Errorf("stop: %v", err)
					}
					delete(x.nodes, "b")
				}
				x.tt.Advance(5 * time.Second)
				x.doneWithin(5 * time.Second)
				x.check()
				equal(t, "callbacks", x.count("a")+x.count("b")-before, 16)
			})
		}
	}
}

// Offsets reach the group when it has gone on to a generation that the member
// has adopted meanwhile. Refused, they go again at once: there is no further
// assignment to wait for.
func TestOffsetsThatMissedTheirGenerationGoAtOnceInTheNext(t *testing.T) {
	x := newExact(t, 4)
	x.start("a")
	x.sendMany(16)
	x.doneWithin(5 * time.Second)
	const late = 2 * time.Second
	x.fail("a", tester.OpTxnOffsets, tester.Delay(late))
	x.sendMany(16)
	x.tt.Settle()
	x.tt.Rebalance("g")
	x.tt.Advance(late - time.Millisecond)
	equal(t, "committed before they arrive", x.done(), false)
	x.tt.Advance(time.Millisecond)
	equal(t, "committed as soon as they have arrived", x.done(), true)
	x.check()
}

// Offsets are fenced that a process sent in the name which it had before it
// joined again under its identity. Whether another process has the identity is
// for the membership to say: nothing fails, and they are committed.
func TestOffsetsInAFormerNameEndNothing(t *testing.T) {
	for guarantee, g := range guarantees {
		t.Run(guarantee, func(t *testing.T) {
			x := newExact(t, 4)
			x.start("a", processor.WithGuarantee(g))
			x.sendMany(16)
			x.doneWithin(5 * time.Second)
			x.fail("a", tester.OpTxnOffsets, tester.Error(kafka.ErrFencedInstance))
			x.fail("a", tester.OpCommit, tester.Error(kafka.ErrFencedInstance))
			x.sendMany(16)
			x.doneWithin(5 * time.Second)
			x.check()
			equal(t, "callbacks", x.count("a"), 32)
		})
	}
}

// One partition is taken away while the offsets of four are to be committed,
// and no further input comes: those of the three that stay are committed, and
// none of their records is repeated.
func TestRevokedPartitionDoesNotSpoilTheCommitOfTheOthers(t *testing.T) {
	for guarantee, g := range guarantees {
		t.Run(guarantee, func(t *testing.T) {
			x := newExact(t, 4)
			a := x.start("a", processor.WithGuarantee(g))
			x.sendMany(16)
			x.tt.Settle()
			x.fail("a", tester.OpTxnOffsets, tester.Delay(time.Second))
			x.fail("a", tester.OpCommit, tester.Delay(time.Second))
			x.sendMany(16)
			x.tt.Settle()
			x.start("b", processor.WithGuarantee(g))
			x.tt.Advance(10 * time.Second)
			if !x.done() {
				t.Error("not all is committed")
			}
			a.Restart()
			x.tt.Advance(time.Minute)
			x.check()
			equal(t, "callbacks", x.count("a")+x.count("b"), 32)
		})
	}
}

// An owner stands still with a transaction open, its offsets accepted, until
// another one has taken over. When it goes on its commit is refused, and it
// is a member like any other again.
func TestPausedOwnerCannotFinishItsTransaction(t *testing.T) {
	for _, op := range []tester.Op{tester.OpAddPartitions, tester.OpProduce, tester.OpAddOffsets, tester.OpTxnOffsets} {
		for _, dynamic := range []bool{false, true} {
			t.Run(fmt.Sprint("at ", op, ", dynamic ", dynamic), func(t *testing.T) {
				x := newExact(t, 1)
				var opts []processor.Option
				if dynamic {
					opts = append(opts, processor.WithDynamicMembership())
				}
				a := x.start("a", opts...)
				for range 10 {
					x.send("k")
				}
				x.doneWithin(time.Second)
				b := x.start("b", opts...)
				x.fail("a", op, tester.Delay(time.Second)) // it is on its way, and arrives
				for range 5 {
					x.send("k")
				}
				x.tt.Settle()
				a.Pause()
				x.tt.Advance(time.Second)
				equal(t, "committed before the session is over", x.tt.Committed("g", "numbers", 0), 10)
				x.doneWithin(13 * time.Second)
				equal(t, "callbacks of the next owner", x.count("b"), 5)
				a.Resume()
				x.tt.Advance(10 * time.Second)
				x.alive("a", "b")
				x.send("k")
				x.doneWithin(time.Second)
				x.check()
				if err := b.Stop(); err != nil {
					t.Errorf("stop: %v", err)
				}
				delete(x.nodes, "b")
				x.send("k")
				x.doneWithin(5 * time.Second)
				x.check()
			})
		}
	}
}
