package transactions

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
)

var steps = map[string]int16{
	"add partitions": addPartitionsKey, "produce": produceKey, "add offsets": addOffsetsKey, "commit offsets": offsetsKey, "commit": endKey,
}

func TestALostAnswerLeavesDoubtAndNothingElse(t *testing.T) {
	for step, key := range steps {
		t.Run(step, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				r.commit()
				r.wire.lose(key, 1)
				r.commit()
				if !r.tx.InDoubt() {
					t.Error("not in doubt after a lost answer")
				}
				r.init(true)
				r.commit()
				if r.tx.InDoubt() {
					t.Error("in doubt without trouble")
				}
				r.verify()
			})
		})
	}
}

func TestALostAnswerToAnInit(t *testing.T) {
	for _, own := range []bool{true, false} {
		onBoth(t, func(t *testing.T, r *rig) {
			r.commit()
			r.wire.lose(initKey, 2)
			r.init(own)
			r.commit()
			r.verify()
		})
	}
}

func TestALostAnswerToAnAbort(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.commit()
		if err := r.write(r.tx).err(t); err != nil {
			t.Fatal(err)
		}
		r.wire.lose(endKey, 1)
		if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
			t.Fatal(err)
		}
		if !r.tx.InDoubt() {
			t.Error("not in doubt after a lost answer")
		}
		r.init(true)
		r.commit()
		r.verify()
	})
}

func TestACommitWithoutAnswersHasAnUnknownOutcome(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.commit()
		a := r.write(r.tx)
		if err := a.err(t); err != nil {
			t.Fatal(err)
		}
		lost := r.wire.lose(endKey, 1000)
		err := r.tx.End(r.ctx(500*time.Millisecond), true)
		if !errors.Is(err, kafka.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want ErrOutcomeUnknown", err)
		}
		if err := r.tx.End(r.ctx(time.Second), false); !errors.Is(err, kafka.ErrOutcomeUnknown) {
			t.Fatalf("the other end: got %v, want ErrOutcomeUnknown", err)
		}
		r.wire.stop(lost)
		if err := r.tx.End(r.ctx(20*time.Second), true); err != nil {
			t.Fatal(err)
		}
		r.committed(a)
		if !r.tx.InDoubt() {
			t.Error("not in doubt after lost answers")
		}
		r.init(true)
		r.commit()
		r.verify()
	})
}

// Nobody knows what became of a commit whose writer was fenced before it
// could ask again.
func TestACommitWithoutAnswersIsUnknownToAFencedWriter(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.commit()
		a := r.write(r.tx)
		if err := a.err(t); err != nil {
			t.Fatal(err)
		}
		lost := r.wire.lose(endKey, 1000)
		if err := r.tx.End(r.ctx(300*time.Millisecond), true); !errors.Is(err, kafka.ErrOutcomeUnknown) {
			t.Fatalf("got %v, want ErrOutcomeUnknown", err)
		}
		r.wire.stop(lost)
		other := r.newTransactor(r.client, r.cfg)
		if err := other.Init(r.ctx(20*time.Second), false); err != nil {
			t.Fatal(err)
		}
		if err := r.tx.End(r.ctx(20*time.Second), true); !errors.Is(err, kafka.ErrOutcomeUnknown) {
			t.Fatalf("got %v, want ErrOutcomeUnknown", err)
		}
		r.committed(a) // the broker had it
		r.tx = other
		r.commit()
		r.verify()
	})
}

// A step that is given up leaves the transaction open; it can be aborted.
func TestAStepWithoutAnswersCanBeAborted(t *testing.T) {
	for _, step := range []string{"add offsets", "commit offsets"} {
		t.Run(step, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				r.commit()
				lost := r.wire.lose(steps[step], 1000)
				if err := r.records(r.tx).err(t); err != nil {
					t.Fatal(err)
				}
				err := r.tx.Offsets(r.ctx(300*time.Millisecond), r.committer(), []kafka.CommittedOffset{
					{TopicPartition: kafka.TopicPartition{Topic: r.topic}, Offset: 99, LeaderEpoch: -1}})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("got %v, want the end of the context", err)
				}
				r.wire.stop(lost)
				if err := r.tx.End(r.ctx(20*time.Second), true); !errors.Is(err, kafka.ErrAbortable) {
					t.Fatalf("commit: got %v, want ErrAbortable", err)
				}
				if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
					t.Fatal(err)
				}
				if !r.tx.InDoubt() {
					t.Error("not in doubt after lost answers")
				}
				r.init(true)
				r.commit()
				r.verify()
			})
		})
	}
}

func TestProduceWithoutAnswersCanBeAborted(t *testing.T) {
	for _, step := range []string{"add partitions", "produce"} {
		t.Run(step, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				r.commit()
				lost := r.wire.lose(steps[step], 1000)
				a := r.records(r.tx)
				if err := r.tx.End(r.ctx(300*time.Millisecond), true); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kafka.ErrOutcomeUnknown) {
					t.Fatalf("commit: got %v, want the end of the context", err)
				}
				if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
					t.Fatal(err)
				}
				if err := a.err(t); !errors.Is(err, kafka.ErrAbortable) {
					t.Fatalf("got %v, want ErrAbortable", err)
				}
				r.wire.stop(lost)
				if !r.tx.InDoubt() {
					t.Error("not in doubt after lost answers")
				}
				r.init(true)
				r.commit()
				r.verify()
			})
		})
	}
}

// Requests that were given up arrive after all, in the middle of the next
// transaction: with a new epoch they do nothing.
func TestALateRequestDoesNotHitTheNextTransaction(t *testing.T) {
	for _, step := range []string{"add partitions", "produce", "commit"} {
		for _, commit := range []bool{true, false} {
			t.Run(step, func(t *testing.T) {
				onBoth(t, func(t *testing.T, r *rig) {
					r.commit()
					late := r.wire.hold(steps[step], 1)
					r.commit() // it was sent again
					r.init(true)
					a := r.write(r.tx)
					if err := a.err(t); err != nil {
						t.Fatal(err)
					}
					if err := r.wire.deliver(late); err != nil {
						t.Fatal(err)
					}
					if err := r.tx.End(r.ctx(20*time.Second), commit); err != nil {
						t.Fatal(err)
					}
					if commit {
						r.committed(a)
					}
					r.commit()
					r.verify()
				})
			})
		}
	}
}

// Records that were given up arrive after the abort, when nothing else goes
// to their partition: they must not open a transaction that nobody ends.
func TestALateRecordDoesNotOpenATransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.commit()
		late := r.wire.hold(produceKey, 1000)
		a := r.records(r.tx)
		if err := r.tx.End(r.ctx(300*time.Millisecond), true); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("commit: got %v, want the end of the context", err)
		}
		if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
			t.Fatal(err)
		}
		if err := a.err(t); !errors.Is(err, kafka.ErrAbortable) {
			t.Fatalf("got %v, want ErrAbortable", err)
		}
		r.wire.stop(late)
		r.init(true)
		if err := r.wire.deliver(late); err != nil {
			t.Fatal(err)
		}
		r.verify()
		r.commit()
		r.verify()
	})
}
