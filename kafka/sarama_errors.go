package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// kerror turns a broker's error code into an error that is both the typed
// one of this package, where there is one, and the code itself. No error is
// nil.
func kerror(e sarama.KError) error {
	if e == sarama.ErrNoError {
		return nil
	}
	if typed := typedError(e); typed != nil {
		return fmt.Errorf("%w (%w)", typed, e)
	}
	return e
}

func typedError(e sarama.KError) error {
	switch e {
	case sarama.ErrUnknownTopicOrPartition, errUnknownTopicID:
		return ErrUnknownTopic
	case errInconsistentTopicID:
		return ErrTopicChanged
	case sarama.ErrTopicAuthorizationFailed, sarama.ErrGroupAuthorizationFailed, sarama.ErrClusterAuthorizationFailed,
		sarama.ErrTransactionalIDAuthorizationFailed, sarama.ErrDelegationTokenAuthorizationFailed, sarama.ErrSecurityDisabled:
		return ErrNotAuthorized
	case sarama.ErrSASLAuthenticationFailed, sarama.ErrUnsupportedSASLMechanism, sarama.ErrIllegalSASLState:
		return ErrAuthentication
	case sarama.ErrTopicAlreadyExists:
		return ErrTopicExists
	case sarama.ErrInvalidTopic, sarama.ErrInvalidPartitions, sarama.ErrInvalidReplicationFactor,
		sarama.ErrInvalidReplicaAssignment, sarama.ErrInvalidConfig, sarama.ErrPolicyViolation:
		return ErrInvalidTopic
	case sarama.ErrOffsetOutOfRange:
		return ErrOffsetOutOfRange
	case sarama.ErrInvalidMessage:
		return ErrCorrupt
	case sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge:
		return ErrTooLarge
	case sarama.ErrInvalidRecord, sarama.ErrInvalidTimestamp:
		return ErrInvalidRecord
	case sarama.ErrUnsupportedVersion, sarama.ErrUnsupportedForMessageFormat:
		return ErrUnsupported
	}
	return typedGroupError(e)
}

func typedGroupError(e sarama.KError) error {
	switch e {
	case sarama.ErrIllegalGeneration:
		return ErrIllegalGeneration
	case sarama.ErrUnknownMemberId:
		return ErrUnknownMember
	case sarama.ErrRebalanceInProgress:
		return ErrRebalanceInProgress
	case sarama.ErrFencedInstancedId:
		return ErrFencedInstance
	case sarama.ErrInconsistentGroupProtocol:
		return ErrInconsistentGroup
	}
	return nil
}

// Codes that sarama has no name for.
const (
	errUnknownTopicID      sarama.KError = 100
	errInconsistentTopicID sarama.KError = 103
)

// retriable reports whether waiting, or asking another broker, may help.
// Whatever is not a decision of a broker or of this process is trouble of
// the network.
func retriable(err error) bool {
	if err == nil || errors.Is(err, ErrAuthentication) || errors.Is(err, ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var encoding sarama.PacketEncodingError
	var configuration sarama.ConfigurationError
	if errors.As(err, &encoding) || errors.As(err, &configuration) {
		return false
	}
	var code sarama.KError
	if errors.As(err, &code) {
		return retriableCode(code)
	}
	return true
}

func retriableCode(e sarama.KError) bool {
	switch e {
	case sarama.ErrLeaderNotAvailable, sarama.ErrNotLeaderForPartition, sarama.ErrRequestTimedOut,
		sarama.ErrBrokerNotAvailable, sarama.ErrReplicaNotAvailable, sarama.ErrStaleControllerEpochCode,
		sarama.ErrNetworkException, sarama.ErrOffsetsLoadInProgress, sarama.ErrConsumerCoordinatorNotAvailable,
		sarama.ErrNotCoordinatorForConsumer, sarama.ErrNotEnoughReplicas, sarama.ErrNotEnoughReplicasAfterAppend,
		sarama.ErrNotController, sarama.ErrConcurrentTransactions, sarama.ErrKafkaStorageError,
		sarama.ErrReassignmentInProgress, sarama.ErrFetchSessionIDNotFound, sarama.ErrInvalidFetchSessionEpoch,
		sarama.ErrListenerNotFound, sarama.ErrFencedLeaderEpoch, sarama.ErrUnknownLeaderEpoch,
		sarama.ErrStaleBrokerEpoch, sarama.ErrOffsetNotAvailable, sarama.ErrPreferredLeaderNotAvailable,
		sarama.ErrEligibleLeadersNotAvailable, sarama.ErrUnstableOffsetCommit, sarama.ErrThrottlingQuotaExceeded:
		return true
	}
	return false
}

// connectionError types what came of opening or using a connection: a
// refused credential or handshake is an ErrAuthentication, a broker's code
// its own error, anything else stays as it is.
func connectionError(addr string, err error) error {
	var code sarama.KError
	switch {
	case errors.Is(err, sarama.ErrSASLAuthenticationFailed), errors.Is(err, sarama.ErrUnsupportedSASLMechanism),
		errors.Is(err, sarama.ErrIllegalSASLState), handshakeFailed(err):
		return fmt.Errorf("broker %s: %w: %w", addr, ErrAuthentication, err)
	case errors.As(err, &code):
		return fmt.Errorf("broker %s: %w", addr, kerror(code))
	}
	return fmt.Errorf("broker %s: %w", addr, err)
}

// handshakeFailed reports whether TLS failed for good: an untrusted or wrong
// certificate on either side, or a peer that does not speak TLS.
func handshakeFailed(err error) bool {
	var verification *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	if errors.As(err, &verification) || errors.As(err, &header) {
		return true
	}
	var op *net.OpError // crypto/tls reports an alert this way
	return errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}

// Limits of a backoff.
const (
	backoffMin  = 20 * time.Millisecond
	backoffMax  = 2 * time.Second
	firstNotice = time.Second      // trouble that passes sooner is not logged
	noticeMax   = 10 * time.Minute // the longest silence about trouble that goes on
)

// backoff spaces the tries of one thing: exponentially with jitter. It logs
// trouble that lasts, at growing intervals. It belongs to one goroutine.
type backoff struct {
	what   string
	clock  Clock
	log    *zap.Logger
	n      int           // tries that failed in a row
	since  time.Time     // of the first of them
	notice time.Duration // how long trouble has lasted when it is logged next
}

func newBackoff(what string, clock Clock, log *zap.Logger) *backoff {
	return &backoff{what: what, clock: clock, log: log}
}

// retry repeats f while its error is one that waiting may help, and ctx
// lives.
func (d *saramaDriver) retry(ctx context.Context, what string, f func() error) error {
	b := newBackoff(what, d.clock, d.log)
	for {
		err := f()
		if err == nil {
			b.reset()
			return nil
		}
		if !retriable(err) {
			return err
		}
		if stopped := b.wait(ctx, err); stopped != nil {
			return fmt.Errorf("%w: %w", stopped, err)
		}
	}
}

// wait notes a failed try and sleeps. It returns the context's error if that
// ends first.
func (b *backoff) wait(ctx context.Context, err error) error {
	return b.clock.Sleep(ctx, b.failed(err))
}

// failed notes a failed try and returns how long to wait before the next.
func (b *backoff) failed(err error) time.Duration {
	now := b.clock.Now()
	if b.n == 0 {
		b.since, b.notice = now, firstNotice
	}
	if lasted := now.Sub(b.since); lasted >= b.notice {
		b.log.Warn(b.what+": still trying", zap.Error(err), zap.Duration("for", lasted.Round(time.Millisecond)), zap.Int("tries", b.n+1))
		b.notice = lasted + min(2*lasted, noticeMax)
	}
	d := backoffMax
	if b.n < 7 {
		d = min(backoffMin<<b.n, backoffMax)
	}
	b.n++
	return d/2 + rand.N(d/2+1)
}

// reset notes a try that succeeded.
func (b *backoff) reset() {
	if b.n > 0 && b.notice > firstNotice {
		b.log.Info(b.what+": works again", zap.Duration("after", b.clock.Now().Sub(b.since).Round(time.Millisecond)))
	}
	b.n = 0
}
