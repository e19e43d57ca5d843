package kafka

import (
	"context"
	"errors"
	"time"
)

// TransactorConfig describes a Transactor.
type TransactorConfig struct {
	// ID is the transactional id. Whoever initialises it last owns it.
	ID string

	// Timeout is after how long without an end the broker aborts a
	// transaction. Default 60 s.
	Timeout time.Duration

	// Compression and BatchBytes are as in ProducerConfig.
	Compression Compression
	BatchBytes  int
}

// Transactor writes in transactions: records and a group's offsets take
// effect together or not at all. It is driven by one goroutine, step by step:
//
//	Init, then for each transaction: Begin, Produce…, Offsets, End
//
// Trouble that passes (a coordinator that loads or moves, concurrent
// transactions, a leader that moves, a lost connection before a request was
// sent) is retried inside until ctx ends. A step that returns an error leaves
// the transaction open; the error says what may be done:
//
//   - ErrAbortable (wrapped around the cause): End(ctx, false), then the same
//     may be written again in a new transaction.
//   - ErrFenced: somebody else initialised the id, or the broker aborted the
//     transaction by timeout; which one only Init tells.
//   - ErrOutcomeUnknown, of End only: the request may have been carried out.
//     End may be called again, with the same direction.
//
// Whether a request went unanswered, InDoubt tells; then Init(ctx, true) must
// come before the next Begin, or a request that is still on its way could hit
// the next transaction.
type Transactor interface {
	// Init obtains producer id and epoch. With own = false it takes the id
	// over, whoever had it: an open transaction is aborted and its writer
	// fenced, for good only when Init has returned nil. With own = true it
	// renews the epoch that this Transactor has, and returns ErrFenced if
	// another one was given out since.
	Init(ctx context.Context, own bool) error

	// Begin opens a transaction. It sends nothing.
	Begin()

	// Produce is Producer.Produce within the transaction. A run's error is
	// ErrTooLarge, ErrUnknownTopic, ErrNotAuthorized or ErrInvalidRecord if
	// the broker refused just that run, which was not written, while the
	// others may have been: the transaction must be aborted all the same.
	// ErrAbortable, ErrFenced and ErrClosed concern all.
	Produce(o Outgoing)

	// Offsets makes the offsets part of the transaction, in the name of a
	// member and its generation. The errors of CommittedOffset.Err and of
	// Member.Commit apply: after any of them the transaction must be
	// aborted.
	Offsets(ctx context.Context, by Committer, offsets []CommittedOffset) error

	// End commits or aborts. It waits for what was produced; an abort gives
	// up what is queued at once and what was sent after a second, and is in
	// doubt then. Without anything written since Begin it does nothing. A
	// commit is refused with ErrAbortable if something failed that was
	// produced, or an offset. After an unknown outcome the contrary end is
	// refused until Init.
	End(ctx context.Context, commit bool) error

	// InDoubt reports whether a request of the last transaction was never
	// answered, or a sequence number was lost: only a new epoch helps then.
	InDoubt() bool

	// Close fails what is under way with ErrClosed and waits. It does not
	// end an open transaction.
	Close() error
}

// Committer is in whose name a transaction commits offsets.
type Committer struct {
	Group, MemberID, InstanceID string
	Generation                  int32
}

// Errors of transactions. They come wrapped: use errors.Is.
var (
	// ErrAbortable: the transaction cannot be committed, and must be
	// aborted.
	ErrAbortable = errors.New("transaction must be aborted")
	// ErrFenced: the producer epoch is not the newest of its transactional
	// id.
	ErrFenced = errors.New("producer is fenced")
	// ErrOutcomeUnknown: the end of a transaction was asked for and not
	// answered.
	ErrOutcomeUnknown = errors.New("outcome of the transaction is unknown")
)
