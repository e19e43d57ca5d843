package transactions

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rekastream/reka/kafka"
)

var (
	seed   = flag.Uint64("seed", 1, "of the random faults")
	rounds = flag.Int("rounds", 60, "transactions of a run with random faults")
)

// TestRandomFaults does what a user of a Transactor has to do after each kind
// of error, under faults of all kinds, several at once, and expects that each
// transaction took effect once, or not at all.
func TestRandomFaults(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		t.Logf("seed %d", *seed)
		rnd := rand.New(rand.NewPCG(*seed, 0))
		outcomes := map[string]int{}
		for range *rounds {
			var late []*rule
			for range rnd.IntN(3) {
				if l := r.trouble(rnd); l != nil {
					late = append(late, l)
				}
			}
			outcomes[r.round(rnd, func() {})]++
			for _, l := range late {
				r.wire.stop(l)
				if rnd.IntN(2) == 0 {
					_ = r.wire.deliver(l) // maybe nothing was held back
				}
			}
		}
		t.Log(outcomes)
		r.calm()
		r.init(true)
		r.commit()
		r.verify()
		if outcomes["committed"] < *rounds/4 {
			t.Errorf("too few transactions were committed: %v", outcomes)
		}
	})
}

// trouble sets up one fault that the next requests meet.
func (r *rig) trouble(rnd *rand.Rand) *rule {
	keys := []int16{produceKey, initKey, addPartitionsKey, addOffsetsKey, endKey, offsetsKey}
	key := keys[rnd.IntN(len(keys))]
	switch n := rnd.IntN(10); {
	case n < 4:
		r.wire.lose(key, 1+rnd.IntN(2))
	case n < 6:
		return r.wire.hold(key, 1)
	case r.fake == nil:
	case n == 6:
		r.fake.RehashCoordinators()
	case n == 7:
		r.fake.ShufflePartitionLeaders()
	default:
		codes := []*kerr.Error{
			kerr.ConcurrentTransactions, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.UnknownServerError,
			kerr.TransactionAbortable, kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.OutOfOrderSequenceNumber, kerr.RequestTimedOut,
		}
		r.faults = append(r.faults, r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Key(key)}, Err: codes[rnd.IntN(len(codes))], Count: 1 + rnd.IntN(2)}))
	}
	return nil
}

// calm ends all trouble.
func (r *rig) calm() {
	for _, f := range r.faults {
		f.Remove()
	}
	r.wire.mu.Lock()
	defer r.wire.mu.Unlock()
	r.wire.rules = nil
}

// round is one transaction of a careful user, who does something in the
// middle of it.
func (r *rig) round(rnd *rand.Rand, middle func()) string {
	r.t.Helper()
	if r.tx.InDoubt() {
		r.initAnyhow(true)
	}
	a := r.records(r.tx)
	middle()
	patience := 10 * time.Second
	if rnd.IntN(4) == 0 {
		patience = time.Duration(1+rnd.IntN(30)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	err := r.offsets(r.tx)
	if err == nil && rnd.IntN(5) > 0 {
		if err = r.tx.End(ctx, true); err == nil {
			r.committed(a)
			return "committed"
		}
	}
	for errors.Is(err, kafka.ErrOutcomeUnknown) && !errors.Is(err, kafka.ErrFenced) {
		if err = r.tx.End(r.ctx(20*time.Second), true); err == nil {
			r.committed(a)
			return "committed later"
		}
	}
	if errors.Is(err, kafka.ErrOutcomeUnknown) {
		r.initAnyhow(true)
		return r.resolve(a)
	}
	if errors.Is(err, kafka.ErrFenced) {
		r.initAnyhow(true)
		return "fenced"
	}
	if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
		r.initAnyhow(true)
		return "abort failed"
	}
	return "aborted"
}

// resolve looks for the mark of a transaction whose outcome nobody knows.
func (r *rig) resolve(a *attempt) string {
	r.t.Helper()
	if o := r.committedOffset(); o.Offset == int64(r.n) {
		r.committed(a)
		return "committed by its mark"
	}
	return "dropped by its mark"
}

// initAnyhow initialises, as a user who may take the id over if he must.
func (r *rig) initAnyhow(own bool) {
	r.t.Helper()
	var err error
	for range 20 {
		if err = r.tx.Init(r.ctx(20*time.Second), own); err == nil {
			return
		}
		if errors.Is(err, kafka.ErrFenced) {
			own = false
		}
	}
	r.t.Fatalf("init: %v", err)
}
