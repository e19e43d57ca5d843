package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/IBM/sarama"
)

func TestBrokerCodesAreTypedAndKeepTheirCode(t *testing.T) {
	for code, want := range map[sarama.KError]error{
		sarama.ErrUnknownTopicOrPartition:         ErrUnknownTopic,
		errUnknownTopicID:                         ErrUnknownTopic,
		errInconsistentTopicID:                    ErrTopicChanged,
		sarama.ErrTopicAuthorizationFailed:        ErrNotAuthorized,
		sarama.ErrGroupAuthorizationFailed:        ErrNotAuthorized,
		sarama.ErrSASLAuthenticationFailed:        ErrAuthentication,
		sarama.ErrTopicAlreadyExists:              ErrTopicExists,
		sarama.ErrInvalidReplicationFactor:        ErrInvalidTopic,
		sarama.ErrPolicyViolation:                 ErrInvalidTopic,
		sarama.ErrOffsetOutOfRange:                ErrOffsetOutOfRange,
		sarama.ErrInvalidMessage:                  ErrCorrupt,
		sarama.ErrMessageSizeTooLarge:             ErrTooLarge,
		sarama.ErrInvalidTimestamp:                ErrInvalidRecord,
		sarama.ErrUnsupportedVersion:              ErrUnsupported,
		sarama.ErrIllegalGeneration:               ErrIllegalGeneration,
		sarama.ErrUnknownMemberId:                 ErrUnknownMember,
		sarama.ErrRebalanceInProgress:             ErrRebalanceInProgress,
		sarama.ErrFencedInstancedId:               ErrFencedInstance,
		sarama.ErrInconsistentGroupProtocol:       ErrInconsistentGroup,
		sarama.ErrNotEnoughReplicas:               sarama.ErrNotEnoughReplicas,
		sarama.ErrOutOfOrderSequenceNumber:        sarama.ErrOutOfOrderSequenceNumber,
		sarama.ErrConsumerCoordinatorNotAvailable: sarama.ErrConsumerCoordinatorNotAvailable,
	} {
		if err := kerror(code); !errors.Is(err, want) || !errors.Is(err, code) {
			t.Errorf("kerror(%d) = %v, want it to be %v and its code", int16(code), err, want)
		}
	}
	if err := kerror(sarama.ErrNoError); err != nil {
		t.Errorf("no error is %v", err)
	}
}

func TestOnlyTroubleThatMayPassIsRetriable(t *testing.T) {
	passing := []error{
		io.EOF, &net.OpError{Op: "dial", Err: errors.New("connection refused")}, &net.DNSError{Err: "no such host"},
		kerror(sarama.ErrNotLeaderForPartition), kerror(sarama.ErrOffsetsLoadInProgress), kerror(sarama.ErrNotController),
		fmt.Errorf("wrapped: %w", kerror(sarama.ErrNotCoordinatorForConsumer)), sarama.ErrNotConnected, sarama.ErrIncompleteResponse,
	}
	for _, err := range passing {
		if !retriable(err) {
			t.Errorf("%v is not retriable", err)
		}
	}
	final := []error{
		nil, ErrClosed, ErrAuthentication, context.Canceled, context.DeadlineExceeded,
		kerror(sarama.ErrUnknownTopicOrPartition), kerror(sarama.ErrTopicAuthorizationFailed), kerror(sarama.ErrUnsupportedVersion),
		kerror(sarama.ErrUnknown), sarama.PacketEncodingError{Info: "too long"}, sarama.ConfigurationError("wrong"),
	}
	for _, err := range final {
		if retriable(err) {
			t.Errorf("%v is retriable", err)
		}
	}
}

func TestRefusedHandshakesAndCredentialsAreAuthenticationErrors(t *testing.T) {
	for _, err := range []error{
		sarama.ErrSASLAuthenticationFailed,
		sarama.Wrap(sarama.ErrSASLAuthenticationFailed, errors.New("invalid credentials")),
		sarama.ErrUnsupportedSASLMechanism,
		&tls.CertificateVerificationError{Err: errors.New("unknown authority")},
		tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
		&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")},
	} {
		if got := connectionError("b:1", err); !errors.Is(got, ErrAuthentication) || retriable(got) {
			t.Errorf("%v becomes %v, retriable %v", err, got, retriable(got))
		}
	}
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	if got := connectionError("b:1", refused); errors.Is(got, ErrAuthentication) || !retriable(got) {
		t.Errorf("a refused connection becomes %v", got)
	}
}
