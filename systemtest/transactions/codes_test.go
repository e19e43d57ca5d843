package transactions

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rekastream/reka/kafka"
)

// outcome is what one answer with a code leads to.
type outcome int

const (
	passes  outcome = iota // the step is repeated and succeeds
	aborts                 // ErrAbortable; after an abort the id works on
	renews                 // the same, and in doubt: the epoch must be renewed, too
	fences                 // ErrFenced; after Init the id works on
	refuses                // the error of a single run; the commit is refused with ErrAbortable
	fails                  // another error, of Init
)

// transcript is a request that is answered once with each of some codes.
type transcript struct {
	step    string
	key     kmsg.Key
	outcome outcome
	also    error // the error is this, too
	codes   []*kerr.Error
}

var transcripts = []transcript{
	{"produce", kmsg.Produce, passes, nil, []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.RequestTimedOut, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend,
		kerr.KafkaStorageError, kerr.NetworkException, kerr.ConcurrentTransactions, kerr.CorruptMessage, kerr.UnknownTopicOrPartition,
		kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator,
	}},
	{"produce", kmsg.Produce, renews, nil, []*kerr.Error{kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.UnknownServerError}},
	{"produce", kmsg.Produce, fences, nil, []*kerr.Error{kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping}},
	{"produce", kmsg.Produce, aborts, nil, []*kerr.Error{kerr.TransactionAbortable, kerr.InvalidRequiredAcks}},
	{"produce", kmsg.Produce, aborts, kafka.ErrNotAuthorized, []*kerr.Error{kerr.TransactionalIDAuthorizationFailed, kerr.ClusterAuthorizationFailed}},
	{"produce", kmsg.Produce, refuses, kafka.ErrNotAuthorized, []*kerr.Error{kerr.TopicAuthorizationFailed}},
	{"produce", kmsg.Produce, refuses, kafka.ErrTooLarge, []*kerr.Error{kerr.MessageTooLarge, kerr.RecordListTooLarge}},
	{"produce", kmsg.Produce, refuses, kafka.ErrInvalidRecord, []*kerr.Error{kerr.InvalidRecord, kerr.InvalidTimestamp}},

	{"add partitions", kmsg.AddPartitionsToTxn, passes, nil, []*kerr.Error{
		kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator,
		kerr.RequestTimedOut, kerr.NetworkException, kerr.UnknownTopicOrPartition,
	}},
	{"add partitions", kmsg.AddPartitionsToTxn, fences, nil, []*kerr.Error{kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping}},
	{"add partitions", kmsg.AddPartitionsToTxn, renews, nil, []*kerr.Error{kerr.UnknownProducerID}},
	{"add partitions", kmsg.AddPartitionsToTxn, aborts, nil, []*kerr.Error{kerr.TransactionAbortable, kerr.UnknownServerError}},
	{"add partitions", kmsg.AddPartitionsToTxn, aborts, kafka.ErrNotAuthorized, []*kerr.Error{kerr.TransactionalIDAuthorizationFailed}},
	{"add partitions", kmsg.AddPartitionsToTxn, refuses, kafka.ErrNotAuthorized, []*kerr.Error{kerr.TopicAuthorizationFailed}},

	{"add offsets", kmsg.AddOffsetsToTxn, passes, nil, []*kerr.Error{
		kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.RequestTimedOut, kerr.NetworkException,
	}},
	{"add offsets", kmsg.AddOffsetsToTxn, fences, nil, []*kerr.Error{kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping}},
	{"add offsets", kmsg.AddOffsetsToTxn, renews, nil, []*kerr.Error{kerr.UnknownProducerID}},
	{"add offsets", kmsg.AddOffsetsToTxn, aborts, nil, []*kerr.Error{kerr.TransactionAbortable, kerr.UnknownServerError}},
	{"add offsets", kmsg.AddOffsetsToTxn, aborts, kafka.ErrNotAuthorized, []*kerr.Error{kerr.TransactionalIDAuthorizationFailed, kerr.GroupAuthorizationFailed}},

	{"commit offsets", kmsg.TxnOffsetCommit, passes, nil, []*kerr.Error{
		kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.RequestTimedOut, kerr.NetworkException, kerr.ConcurrentTransactions,
	}},
	{"commit offsets", kmsg.TxnOffsetCommit, fences, nil, []*kerr.Error{kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping}},
	{"commit offsets", kmsg.TxnOffsetCommit, renews, nil, []*kerr.Error{kerr.UnknownProducerID}},
	{"commit offsets", kmsg.TxnOffsetCommit, aborts, nil, []*kerr.Error{kerr.TransactionAbortable, kerr.UnknownServerError, kerr.OffsetMetadataTooLarge, kerr.InvalidCommitOffsetSize}},
	{"commit offsets", kmsg.TxnOffsetCommit, aborts, kafka.ErrNotAuthorized, []*kerr.Error{kerr.TransactionalIDAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.TopicAuthorizationFailed}},
	{"commit offsets", kmsg.TxnOffsetCommit, aborts, kafka.ErrIllegalGeneration, []*kerr.Error{kerr.IllegalGeneration}},
	{"commit offsets", kmsg.TxnOffsetCommit, aborts, kafka.ErrUnknownMember, []*kerr.Error{kerr.UnknownMemberID}},
	{"commit offsets", kmsg.TxnOffsetCommit, aborts, kafka.ErrRebalanceInProgress, []*kerr.Error{kerr.RebalanceInProgress}},
	{"commit offsets", kmsg.TxnOffsetCommit, aborts, kafka.ErrFencedInstance, []*kerr.Error{kerr.FencedInstanceID}},
	{"commit offsets", kmsg.TxnOffsetCommit, aborts, kafka.ErrUnknownTopic, []*kerr.Error{kerr.UnknownTopicOrPartition}},

	{"commit", kmsg.EndTxn, passes, nil, []*kerr.Error{
		kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator,
		kerr.RequestTimedOut, kerr.NetworkException, kerr.UnknownServerError,
	}},
	{"commit", kmsg.EndTxn, fences, nil, []*kerr.Error{kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping}},
	{"commit", kmsg.EndTxn, aborts, nil, []*kerr.Error{kerr.TransactionAbortable}},
	{"commit", kmsg.EndTxn, renews, nil, []*kerr.Error{kerr.UnknownProducerID}},
	{"commit", kmsg.EndTxn, aborts, kafka.ErrNotAuthorized, []*kerr.Error{kerr.TransactionalIDAuthorizationFailed}},

	{"init", kmsg.InitProducerID, passes, nil, []*kerr.Error{
		kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.RequestTimedOut,
		kerr.NetworkException, kerr.ProducerFenced, kerr.InvalidProducerEpoch, // a race with another one
	}},
	{"init", kmsg.InitProducerID, fails, kafka.ErrNotAuthorized, []*kerr.Error{kerr.TransactionalIDAuthorizationFailed, kerr.ClusterAuthorizationFailed}},
	{"init", kmsg.InitProducerID, fails, nil, []*kerr.Error{kerr.InvalidTransactionTimeout, kerr.UnknownServerError}},

	{"renew", kmsg.InitProducerID, passes, nil, []*kerr.Error{kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator}},
	{"renew", kmsg.InitProducerID, fails, kafka.ErrFenced, []*kerr.Error{kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidProducerIDMapping}},
}

func TestEachCodeLeadsToItsOutcome(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts {
		for _, code := range tr.codes {
			t.Run(fmt.Sprintf("%s %d %s", tr.step, code.Code, code.Message), func(t *testing.T) {
				t.Parallel()
				tr.run(t, code)
			})
		}
	}
}

func (tr transcript) run(t *testing.T, code *kerr.Error) {
	r := onFake(t, 1)
	r.commit()
	if tr.step == "init" || tr.step == "renew" {
		tr.runInit(r, code)
		return
	}
	fault := r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{tr.key}, Err: code, Count: 1})
	a := r.write(r.tx)
	err := a.err(t)
	ended := r.tx.End(r.ctx(20*time.Second), true)
	if fault.Hits() == 0 {
		t.Fatal("the code was not answered")
	}
	if tr.step == "commit" {
		err = ended
	}
	tr.check(r, err, ended)
	switch tr.outcome {
	case passes:
		r.committed(a)
	case aborts, refuses:
		tr.abort(r)
	case renews:
		tr.abort(r)
		r.init(true)
	case fences:
		r.init(true)
	}
	r.commit()
	r.verify()
}

// check compares the error of the step, and that of the commit after it.
func (tr transcript) check(r *rig, err, ended error) {
	r.t.Helper()
	class := map[outcome]error{aborts: kafka.ErrAbortable, renews: kafka.ErrAbortable, fences: kafka.ErrFenced}[tr.outcome]
	switch {
	case tr.outcome == passes:
		if err != nil || ended != nil {
			r.t.Fatalf("got %v, %v, want it to pass", err, ended)
		}
	case tr.outcome == refuses:
		if !errors.Is(err, tr.also) || errors.Is(err, kafka.ErrAbortable) || !errors.Is(ended, kafka.ErrAbortable) {
			r.t.Fatalf("got %v, then %v", err, ended)
		}
	case !errors.Is(err, class) || !errors.Is(ended, class) || tr.also != nil && !errors.Is(err, tr.also):
		r.t.Fatalf("got %v, then %v, want %v, %v", err, ended, class, tr.also)
	case errors.Is(ended, kafka.ErrOutcomeUnknown):
		r.t.Fatalf("got %v, but the commit was refused", ended)
	}
	if doubt := tr.outcome == renews; r.tx.InDoubt() != doubt {
		r.t.Errorf("in doubt: %v, want %v", !doubt, doubt)
	}
}

func (tr transcript) abort(r *rig) {
	r.t.Helper()
	if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
		r.t.Fatalf("abort: %v", err)
	}
}

func (tr transcript) runInit(r *rig, code *kerr.Error) {
	fault := r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: code, Count: 1})
	err := r.tx.Init(r.ctx(20*time.Second), tr.step == "renew")
	if fault.Hits() == 0 {
		r.t.Fatal("the code was not answered")
	}
	if tr.outcome == passes && err != nil {
		r.t.Fatalf("got %v, want it to pass", err)
	}
	if tr.outcome == fails {
		if err == nil || tr.also != nil && !errors.Is(err, tr.also) {
			r.t.Fatalf("got %v, want %v", err, tr.also)
		}
		if err := r.write(r.tx).err(r.t); !errors.Is(err, kafka.ErrFenced) {
			r.t.Fatalf("without an epoch: got %v, want ErrFenced", err)
		}
		r.init(false)
	}
	r.commit()
	r.verify()
}

func TestAnAbortEndsWithEachCode(t *testing.T) {
	t.Parallel()
	codes := map[*kerr.Error]error{
		kerr.ConcurrentTransactions: nil, kerr.CoordinatorLoadInProgress: nil, kerr.CoordinatorNotAvailable: nil, kerr.NotCoordinator: nil,
		kerr.UnknownServerError: nil, kerr.RequestTimedOut: nil,
		kerr.InvalidProducerEpoch: kafka.ErrFenced, kerr.ProducerFenced: kafka.ErrFenced, kerr.InvalidTxnState: kafka.ErrFenced,
		kerr.InvalidProducerIDMapping: kafka.ErrFenced, kerr.UnknownProducerID: kafka.ErrFenced,
		kerr.TransactionalIDAuthorizationFailed: kafka.ErrNotAuthorized,
	}
	for code, want := range codes {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			r := onFake(t, 1)
			r.commit()
			if err := r.write(r.tx).err(t); err != nil {
				t.Fatal(err)
			}
			r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: code, Count: 1})
			err := r.tx.End(r.ctx(20*time.Second), false)
			if want == nil && err != nil || !errors.Is(err, want) || errors.Is(err, kafka.ErrAbortable) {
				t.Fatalf("got %v, want %v", err, want)
			}
			if want != nil {
				r.init(true)
			}
			r.commit()
			r.verify()
		})
	}
}

// Partitions are added all together or not at all: one that is refused must
// not keep the others out.
func TestOnePartitionIsRefusedAndTheOthersAreWritten(t *testing.T) {
	r := onFake(t, 1)
	r.commit()
	r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.AddPartitionsToTxn}, Topic: r.topic, Partitions: []int32{1}, Err: kerr.TopicAuthorizationFailed, Count: 1})
	a := r.write(r.tx)
	if err := a.err(t); !errors.Is(err, kafka.ErrNotAuthorized) || len(a.errs) != 1 {
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
}

// A coordinator may be busy with the transaction before for long.
func TestConcurrentTransactionsAreWaitedFor(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.InitProducerID, kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn, kmsg.EndTxn, kmsg.Produce} {
		t.Run(key.Name(), func(t *testing.T) {
			t.Parallel()
			r := onFake(t, 1)
			r.commit()
			fault := r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: kerr.ConcurrentTransactions, Count: 55})
			r.init(false)
			r.commit()
			if hits := fault.Hits(); key != kmsg.Produce && hits != 55 {
				t.Errorf("asked %d times more, want 55", hits)
			}
			if r.tx.InDoubt() {
				t.Error("in doubt, but each request was answered")
			}
			r.verify()
		})
	}
}

// Right after a commit a transaction needs one request for all its
// partitions, in most cases.
func TestPartitionsAreAddedTogether(t *testing.T) {
	r := onFake(t, 1)
	r.commit()
	before := r.wire.count(addPartitionsKey)
	const n = 50
	for range n {
		r.commit()
	}
	if got := r.wire.count(addPartitionsKey) - before; got > 2*n {
		t.Errorf("%d requests for %d transactions of %d partitions", got, n, partitions)
	} else {
		t.Logf("%d requests for %d transactions of %d partitions", got, n, partitions)
	}
}
