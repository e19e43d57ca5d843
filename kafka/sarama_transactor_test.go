package kafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// lonelyTransactor is one whose brokers are away.
func lonelyTransactor(t *testing.T) *saramaTransactor {
	t.Helper()
	d, err := newSaramaDriver([]string{"127.0.0.1:1"}, nil, zap.NewNop()) // nobody listens there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	tx, err := d.NewTransactor(TransactorConfig{ID: "id"})
	if err != nil {
		t.Fatal(err)
	}
	return tx.(*saramaTransactor)
}

func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestTransactorConfigIsChecked(t *testing.T) {
	d, err := newSaramaDriver([]string{"127.0.0.1:1"}, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, cfg := range []TransactorConfig{{}, {ID: "id", Timeout: -1}, {ID: "id", BatchBytes: -1}, {ID: "id", Compression: 99}} {
		if _, err := d.NewTransactor(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

func TestTransactorNeedsAProtocolWithGenerations(t *testing.T) {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_4_0_0
	d, err := newSaramaDriver([]string{"127.0.0.1:1"}, cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.NewTransactor(TransactorConfig{ID: "id"}); !errors.Is(err, ErrUnsupported) {
		t.Fatalf("got %v, want ErrUnsupported", err)
	}
}

func TestTransactorDoesNothingBeforeInit(t *testing.T) {
	tx := lonelyTransactor(t)
	tx.Begin()
	runs := make(chan Run, 1) // room for the one that comes
	tx.Produce(two(runs))
	wantRun(t, runs, ErrFenced)
	if err := tx.Offsets(t.Context(), Committer{Group: "g"}, make([]CommittedOffset, 1)); !errors.Is(err, ErrFenced) {
		t.Errorf("offsets: got %v, want ErrFenced", err)
	}
	if err := tx.End(t.Context(), true); !errors.Is(err, ErrFenced) {
		t.Errorf("commit: got %v, want ErrFenced", err)
	}
	if err := tx.Init(t.Context(), true); !errors.Is(err, ErrFenced) {
		t.Errorf("renewing: got %v, want ErrFenced", err)
	}
	if tx.InDoubt() {
		t.Error("in doubt, but nothing was sent")
	}
}

func TestInitEndsWithItsContextAndWithClose(t *testing.T) {
	tx := lonelyTransactor(t)
	if err := tx.Init(short(t), false); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the end of the context", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- tx.Init(context.Background(), false) }() // ends with Close
	if err := tx.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v, want ErrClosed", err)
	}
	if tx.InDoubt() {
		t.Error("in doubt, but nothing was sent")
	}
}

// begunTransactor is one that believes to have an epoch.
func begunTransactor(t *testing.T) *saramaTransactor {
	tx := lonelyTransactor(t)
	tx.id, tx.epoch, tx.valid = 7, 3, true
	tx.Begin()
	return tx
}

func TestRecordsThatWereNeverSentLeaveNoDoubt(t *testing.T) {
	tx := begunTransactor(t)
	runs := make(chan Run, 2) // room for both
	tx.Produce(two(runs))
	if err := tx.End(short(t), true); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("commit: got %v, want the end of the context", err)
	}
	if err := tx.End(t.Context(), false); err != nil {
		t.Fatalf("abort of what the broker does not know: %v", err)
	}
	wantRun(t, runs, ErrAbortable)
	if tx.InDoubt() {
		t.Error("in doubt, but nothing was sent")
	}
	tx.Produce(two(runs))
	wantRun(t, runs, ErrAbortable) // no transaction was begun
	if err := tx.End(t.Context(), true); !errors.Is(err, ErrAbortable) {
		t.Fatalf("commit of nothing begun: got %v, want ErrAbortable", err)
	}
}

func TestOffsetsThatWereGivenUpCannotBeCommitted(t *testing.T) {
	tx := begunTransactor(t)
	if err := tx.Offsets(short(t), Committer{Group: "g"}, make([]CommittedOffset, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the end of the context", err)
	}
	if err := tx.End(t.Context(), true); !errors.Is(err, ErrAbortable) {
		t.Fatalf("commit: got %v, want ErrAbortable", err)
	}
	if err := tx.End(t.Context(), false); err != nil {
		t.Fatal(err)
	}
}

func TestClosingATransactorFailsItsRecords(t *testing.T) {
	tx := begunTransactor(t)
	runs := make(chan Run, 2) // room for both
	tx.Produce(two(runs))
	if err := tx.Close(); err != nil {
		t.Fatal(err)
	}
	wantRun(t, runs, ErrClosed)
	tx.Produce(two(runs))
	wantRun(t, runs, ErrClosed)
	if err := tx.End(t.Context(), true); !errors.Is(err, ErrClosed) {
		t.Fatalf("commit: got %v, want ErrClosed", err)
	}
}

func TestWhatACoordinatorMayHaveWrittenIsUncertain(t *testing.T) {
	for _, e := range []sarama.KError{
		sarama.ErrNotCoordinatorForConsumer, sarama.ErrConsumerCoordinatorNotAvailable, sarama.ErrRequestTimedOut,
		sarama.ErrNetworkException, sarama.ErrUnknown, sarama.ErrKafkaStorageError, sarama.ErrNotEnoughReplicasAfterAppend,
	} {
		if !endUncertain(e) {
			t.Errorf("%v: an end may have been written", e)
		}
	}
	for _, e := range []sarama.KError{
		sarama.ErrNoError, sarama.ErrConcurrentTransactions, sarama.ErrOffsetsLoadInProgress, sarama.ErrProducerFenced,
		sarama.ErrInvalidTxnState, sarama.ErrTransactionalIDAuthorizationFailed, errTransactionAbortable,
	} {
		if endUncertain(e) {
			t.Errorf("%v: no end was written", e)
		}
	}
}

func TestEndErrorsAreTyped(t *testing.T) {
	late := errors.Join(context.DeadlineExceeded, errors.New("connection lost"))
	tests := []struct {
		name          string
		err           error
		commit, maybe bool
		open          openness
		want          error // nil: success
		not           error
	}{
		{"commit fenced", sarama.ErrProducerFenced, true, false, openTxn, ErrFenced, ErrOutcomeUnknown},
		{"commit fenced after a lost answer", sarama.ErrProducerFenced, true, true, openTxn, ErrOutcomeUnknown, ErrAbortable},
		{"commit contrary after a lost answer", sarama.ErrInvalidTxnState, true, true, openTxn, ErrOutcomeUnknown, ErrAbortable},
		{"commit without an answer", late, true, true, openTxn, ErrOutcomeUnknown, ErrFenced},
		{"commit never written", late, true, false, openTxn, context.DeadlineExceeded, ErrOutcomeUnknown},
		{"commit refused", errTransactionAbortable, true, false, openTxn, ErrAbortable, ErrOutcomeUnknown},
		{"abort without an answer", late, false, true, openTxn, ErrOutcomeUnknown, ErrFenced},
		{"abort fenced after a lost answer", sarama.ErrProducerFenced, false, true, openTxn, ErrFenced, ErrOutcomeUnknown},
		{"abort of what never arrived", sarama.ErrInvalidTxnState, false, false, maybeOpen, nil, nil},
		{"abort of nothing", sarama.ErrInvalidTxnState, false, false, openTxn, ErrFenced, ErrAbortable},
		{"abort without the right", kerror(sarama.ErrTransactionalIDAuthorizationFailed), false, false, openTxn, ErrNotAuthorized, ErrAbortable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tx := begunTransactor(t)
			tx.open, tx.ending = tt.open, ending{maybe: tt.maybe, commit: tt.commit}
			err := tx.endError(tt.err, tt.commit)
			if !errors.Is(err, tt.want) || tt.not != nil && errors.Is(err, tt.not) {
				t.Fatalf("got %v, want %v and not %v", err, tt.want, tt.not)
			}
		})
	}
}

func TestAddedPartitionsAreSorted(t *testing.T) {
	tx := begunTransactor(t)
	tp := func(p int32) TopicPartition { return TopicPartition{Topic: "t", Partition: p} }
	asked := []TopicPartition{tp(0), tp(1), tp(2)}
	answer := func(codes ...sarama.KError) *sarama.AddPartitionsToTxnResponse {
		a := &sarama.AddPartitionsToTxnResponse{Errors: map[string][]*sarama.PartitionError{}}
		for p, code := range codes {
			a.Errors["t"] = append(a.Errors["t"], &sarama.PartitionError{Partition: int32(p), Err: code})
		}
		return a
	}
	decided, err := tx.readPartitions(answer(sarama.ErrOperationNotAttempted, sarama.ErrTopicAuthorizationFailed, sarama.ErrUnknownTopicOrPartition), asked)
	if err != nil || len(decided) != 2 || !errors.Is(decided[tp(1)], ErrNotAuthorized) || !errors.Is(decided[tp(2)], ErrUnknownTopic) || tx.isOpen() != closedTxn {
		t.Fatalf("got %v, %v", decided, err)
	}
	if _, err = tx.readPartitions(answer(0, 0), asked); !retriable(err) {
		t.Fatalf("an answer without a partition: got %v", err)
	}
	if _, err = tx.readPartitions(answer(51, 51, 51), asked); !errors.Is(err, sarama.ErrConcurrentTransactions) {
		t.Fatalf("got %v", err)
	}
	not := sarama.ErrOperationNotAttempted
	if _, err = tx.readPartitions(answer(not, not, not), asked); !retriable(err) {
		t.Fatalf("not attempted without a reason: got %v", err)
	}
	if decided, err = tx.readPartitions(answer(0, 0, 0), asked); err != nil || len(decided) != 3 || tx.isOpen() != openTxn {
		t.Fatalf("got %v, %v", decided, err)
	}
}

func TestNothingIsAddedToWhatWasNotEnded(t *testing.T) {
	tx := begunTransactor(t)
	tx.opened(openTxn)
	tx.Begin()
	runs := make(chan Run, 1) // room for the one that comes
	tx.Produce(two(runs))
	wantRun(t, runs, ErrAbortable)
	if err := tx.End(t.Context(), true); !errors.Is(err, ErrAbortable) {
		t.Fatalf("commit: got %v, want ErrAbortable", err)
	}
	if tx.isOpen() != openTxn {
		t.Fatal("what was open is forgotten")
	}
}

func TestNothingBeginsInDoubt(t *testing.T) {
	tx := begunTransactor(t)
	if err := tx.End(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	tx.doubt.Store(true)
	tx.Begin()
	runs := make(chan Run, 1) // room for the one that comes
	tx.Produce(two(runs))
	wantRun(t, runs, ErrFenced)
	if err := tx.End(t.Context(), true); !errors.Is(err, ErrFenced) {
		t.Fatalf("commit: got %v, want ErrFenced", err)
	}
}
