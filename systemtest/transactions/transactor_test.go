package transactions

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
)

func TestTransactionsTakeEffectAsAWhole(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		for i := range 10 {
			if i%3 != 2 {
				r.commit()
				continue
			}
			a := r.write(r.tx)
			if err := a.err(t); err != nil {
				t.Fatal(err)
			}
			if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
				t.Fatal(err)
			}
		}
		if r.tx.InDoubt() {
			t.Error("in doubt without trouble")
		}
		r.verify()
	})
}

func TestAnAbortDoesNotWaitForWhatIsQueued(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.commit() // leaders are known now
		for range 20 {
			r.write(r.tx)
			if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
				t.Fatal(err)
			}
			if r.tx.InDoubt() {
				t.Fatal("in doubt without trouble")
			}
		}
		r.commit()
		r.verify()
	})
}

func TestAnEmptyTransactionSendsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		for _, commit := range []bool{true, false} {
			r.tx.Begin()
			if err := r.tx.End(r.ctx(20*time.Second), commit); err != nil {
				t.Fatal(err)
			}
		}
		if n := r.wire.count(endKey); n != 0 {
			t.Errorf("%d ends were sent", n)
		}
		r.commit()
		r.verify()
	})
}

func TestOffsetsAloneAndRecordsAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		a := r.records(r.tx)
		if err := r.tx.End(r.ctx(20*time.Second), true); err != nil {
			t.Fatal(err)
		}
		r.committed(a)
		r.tx.Begin()
		if err := r.offsets(r.tx); err != nil {
			t.Fatal(err)
		}
		if err := r.tx.End(r.ctx(20*time.Second), true); err != nil {
			t.Fatal(err)
		}
		r.verify()
	})
}

func TestSequencesGoOnOverTransactionsAndRestartWithAnEpoch(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		for range 3 {
			for range 7 {
				r.commit()
			}
			r.init(true)
		}
		r.init(false)
		r.commit()
		r.verify()
	})
}

func TestATakeoverFencesTheWriterBefore(t *testing.T) {
	steps := map[string]func(*rig) error{
		"produce": func(r *rig) error { return r.records(r.tx).err(r.t) },
		"offsets": func(r *rig) error { r.tx.Begin(); return r.offsets(r.tx) },
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				r.commit()
				other := r.newTransactor(r.client, r.cfg)
				if err := other.Init(r.ctx(20*time.Second), false); err != nil {
					t.Fatal(err)
				}
				if err := step(r); !errors.Is(err, kafka.ErrFenced) {
					t.Fatalf("got %v, want ErrFenced", err)
				}
				if err := r.tx.End(r.ctx(20*time.Second), true); !errors.Is(err, kafka.ErrFenced) {
					t.Fatalf("commit: got %v, want ErrFenced", err)
				}
				if r.fake == nil { // which takes any epoch
					if err := r.tx.Init(r.ctx(20*time.Second), true); !errors.Is(err, kafka.ErrFenced) {
						t.Fatalf("renewing: got %v, want ErrFenced", err)
					}
				}
				r.tx = other
				r.commit()
				r.verify()
			})
		})
	}
}

func TestATakeoverAbortsWhatIsOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		if err := r.write(r.tx).err(t); err != nil {
			t.Fatal(err)
		}
		other := r.newTransactor(r.client, r.cfg)
		if err := other.Init(r.ctx(20*time.Second), false); err != nil {
			t.Fatal(err)
		}
		if err := r.tx.End(r.ctx(20*time.Second), true); !errors.Is(err, kafka.ErrFenced) || errors.Is(err, kafka.ErrOutcomeUnknown) {
			t.Fatalf("commit: got %v, want ErrFenced", err)
		}
		r.tx = other
		r.commit()
		r.verify()
	})
}

func TestRenewingAbortsWhatIsOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		if err := r.write(r.tx).err(t); err != nil {
			t.Fatal(err)
		}
		r.init(true)
		r.commit()
		r.verify()
	})
}

// The broker aborts what takes too long; its writer goes on with its own
// epoch, which nobody else took.
func TestAWriterSurvivesTheTimeoutOfItsTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		cfg := r.cfg
		cfg.ID, cfg.Timeout = r.cfg.ID+"-short", time.Second
		r.tx = r.newTransactor(r.client, cfg)
		r.init(false)
		a := r.write(r.tx)
		if err := a.err(t); err != nil {
			t.Fatal(err)
		}
		r.awaitStable() // it was aborted
		if err := r.tx.End(r.ctx(20*time.Second), true); !errors.Is(err, kafka.ErrFenced) {
			t.Fatalf("got %v, want ErrFenced", err)
		}
		r.init(true)
		r.commit()
		r.verify()
	})
}

func TestOffsetsOfAStrangerAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.tx.Begin()
		by := r.committer()
		by.MemberID, by.Generation = "nobody", 7
		err := r.tx.Offsets(r.ctx(20*time.Second), by, []kafka.CommittedOffset{{TopicPartition: kafka.TopicPartition{Topic: r.topic}, Offset: 1}})
		if !errors.Is(err, kafka.ErrAbortable) || !errors.Is(err, kafka.ErrUnknownMember) && !errors.Is(err, kafka.ErrIllegalGeneration) {
			t.Fatalf("got %v", err)
		}
		if err := r.tx.End(r.ctx(20*time.Second), true); !errors.Is(err, kafka.ErrAbortable) {
			t.Fatalf("commit: got %v, want ErrAbortable", err)
		}
		if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
			t.Fatal(err)
		}
		r.commit()
		r.verify()
	})
}

func TestARefusedOffsetBreaksTheTransaction(t *testing.T) {
	r := newRig(t, realBrokers(t)) // the fake cluster takes metadata of any size
	r.tx.Begin()
	offsets := []kafka.CommittedOffset{
		{TopicPartition: kafka.TopicPartition{Topic: r.topic}, Offset: 1},
		{TopicPartition: kafka.TopicPartition{Topic: r.topic, Partition: 1}, Offset: 1, Metadata: strings.Repeat("x", 5000)},
	}
	err := r.tx.Offsets(r.ctx(20*time.Second), r.committer(), offsets)
	if !errors.Is(err, kafka.ErrAbortable) || offsets[0].Err != nil || offsets[1].Err == nil {
		t.Fatalf("got %v, %v", err, offsets)
	}
	if err := r.tx.End(r.ctx(20*time.Second), true); !errors.Is(err, kafka.ErrAbortable) {
		t.Fatalf("commit: got %v, want ErrAbortable", err)
	}
	if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
		t.Fatal(err)
	}
	r.commit()
	r.verify()
}

func TestARefusedRecordIsNamedAndTheOthersAreWritten(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		big := make([]byte, 8<<20)
		_, _ = rand.NewChaCha8([32]byte{}).Read(big) // so that it stays large
		a := r.records(r.tx)
		runs := make(chan kafka.Run, 1)
		r.tx.Produce(kafka.Outgoing{
			TopicPartition: kafka.TopicPartition{Topic: r.topic, Partition: 1},
			Records:        []kafka.Record{{Key: []byte("big"), Value: big}},
			Done:           func(run kafka.Run) { runs <- run },
		})
		if err := a.err(t); err != nil {
			t.Fatal(err)
		}
		select {
		case run := <-runs:
			if r.fake == nil && (!errors.Is(run.Err, kafka.ErrTooLarge) || errors.Is(run.Err, kafka.ErrAbortable)) {
				t.Fatalf("got %v, want ErrTooLarge", run.Err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no run")
		}
		if r.fake != nil {
			return // it may take records of that size
		}
		if err := r.tx.End(r.ctx(20*time.Second), true); !errors.Is(err, kafka.ErrAbortable) {
			t.Fatalf("commit: got %v, want ErrAbortable", err)
		}
		if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
			t.Fatal(err)
		}
		if r.tx.InDoubt() {
			t.Error("in doubt after a plain refusal")
		}
		r.commit()
		r.verify()
	})
}

func TestAnUnknownTopicFailsItsRunOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		a := r.records(r.tx)
		runs := make(chan kafka.Run, 1)
		r.tx.Produce(kafka.Outgoing{
			TopicPartition: kafka.TopicPartition{Topic: r.topic, Partition: partitions + 7},
			Records:        []kafka.Record{{Key: []byte("k")}},
			Done:           func(run kafka.Run) { runs <- run },
		})
		if err := a.err(t); err != nil {
			t.Fatal(err)
		}
		select {
		case run := <-runs:
			if !errors.Is(run.Err, kafka.ErrUnknownTopic) || errors.Is(run.Err, kafka.ErrAbortable) {
				t.Fatalf("got %v, want ErrUnknownTopic", run.Err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no run")
		}
		if err := r.tx.End(r.ctx(20*time.Second), true); !errors.Is(err, kafka.ErrAbortable) {
			t.Fatalf("commit: got %v, want ErrAbortable", err)
		}
		if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
			t.Fatal(err)
		}
		r.commit()
		r.verify()
	})
}

func TestCloseFailsWhatIsUnderWay(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		a := r.records(r.tx)
		if err := r.tx.Close(); err != nil {
			t.Fatal(err)
		}
		if err := a.err(t); err != nil && !errors.Is(err, kafka.ErrClosed) {
			t.Fatalf("got %v", err)
		}
		if err := r.tx.End(r.ctx(20*time.Second), true); err == nil {
			t.Fatal("a closed transactor committed")
		}
		if err := r.tx.Close(); err != nil {
			t.Fatal(err)
		}
		r.tx = r.newTransactor(r.client, r.cfg)
		r.init(false)
		r.commit()
		r.verify()
	})
}

// awaitStable waits until no transaction is open in the topic.
func (r *rig) awaitStable() {
	r.t.Helper()
	tp := kafka.TopicPartition{Topic: r.topic}
	ctx := r.ctx(time.Minute)
	for {
		hw, err := r.client.Driver().Admin().Offsets(ctx, kafka.HighWatermark, tp)
		if err != nil {
			r.t.Fatal(err)
		}
		lso, err := r.client.Driver().Admin().Offsets(ctx, kafka.LastStable, tp)
		if err != nil {
			r.t.Fatal(err)
		}
		if hw[tp] == lso[tp] {
			return
		}
		if err := kafka.SystemClock().Sleep(ctx, 50*time.Millisecond); err != nil {
			r.t.Fatal("a transaction stays open")
		}
	}
}
