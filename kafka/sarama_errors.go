package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/IBM/sarama"
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
