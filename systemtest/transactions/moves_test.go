package transactions

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/systemtest/realkafka"
)

func TestTransactionsGoOnWhileCoordinatorsAndLeadersMove(t *testing.T) {
	r := onFake(t, 3)
	for i := range 30 {
		move := func(at int) {
			switch i % 5 {
			case at:
				r.fake.RehashCoordinators()
			case (at + 2) % 5:
				r.fake.ShufflePartitionLeaders()
			}
		}
		move(0)
		a := r.records(r.tx)
		move(1)
		if err := r.offsets(r.tx); err != nil {
			t.Fatal(err)
		}
		move(2)
		if err := r.tx.End(r.ctx(20*time.Second), true); err != nil {
			t.Fatalf("commit: %v (%v)", err, a.err(t))
		}
		r.committed(a)
	}
	r.verify()
}

func TestATransactionSurvivesARestartOfItsBroker(t *testing.T) {
	r := onFake(t, 1)
	r.commit()
	a := r.records(r.tx)
	if err := a.err(t); err != nil {
		t.Fatal(err)
	}
	r.fake.Stop()
	ended := make(chan error, 1)
	go func() { // ends with the commit; awaited below
		err := r.offsets(r.tx)
		ended <- errors.Join(err, r.tx.End(r.ctx(20*time.Second), true))
	}()
	r.fake.Restart(t)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	r.committed(a)
	if r.tx.InDoubt() {
		r.init(true)
	}
	r.commit()
	r.verify()
}

func TestNothingIsSentWhileBrokersAreAway(t *testing.T) {
	r := onFake(t, 1)
	r.commit()
	r.fake.Stop()
	a := r.records(r.tx)
	if err := r.tx.End(r.ctx(300*time.Millisecond), true); err == nil || errors.Is(err, kafka.ErrOutcomeUnknown) {
		t.Fatalf("commit: got %v, want the end of the context", err)
	}
	if err := r.tx.End(r.ctx(300*time.Millisecond), false); err != nil && r.tx.InDoubt() == false {
		t.Fatalf("abort of what the broker does not know: %v", err)
	}
	if err := a.err(t); !errors.Is(err, kafka.ErrAbortable) {
		t.Fatalf("got %v, want ErrAbortable", err)
	}
	r.fake.Restart(t)
	r.init(true)
	r.commit()
	r.verify()
}

// Each of three nodes is killed in the middle of a transaction, with the
// coordinators and leaders that it has, and comes back later.
func TestTransactionsGoOnWhileNodesDie(t *testing.T) {
	if testing.Short() {
		t.Skip("needs three nodes")
	}
	c := realkafka.Start(t, realkafka.Config{Nodes: 3})
	r := newRig(t, c.Brokers())
	rnd := rand.New(rand.NewPCG(*seed, 0))
	outcomes := map[string]int{}
	rounds := func(n int) {
		for range n {
			outcomes[r.round(rnd, func() {})]++
		}
	}
	for node := range 3 {
		rounds(4)
		outcomes[r.round(rnd, func() { c.Kill(t, node) })]++
		rounds(4)
		c.Restart(t, node)
		rounds(4)
	}
	t.Log(outcomes)
	if r.tx.InDoubt() {
		r.initAnyhow(true)
	}
	r.commit()
	r.verify()
}
