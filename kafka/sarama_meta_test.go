package kafka

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// metadataBroker is a driver over a broker that answers with what answer
// returns, one after the other, and with the last one for ever.
func metadataBroker(t *testing.T, answers ...func(addr string) *sarama.MetadataResponse) (*saramaDriver, *sarama.MockBroker) {
	t.Helper()
	broker := sarama.NewMockBroker(t, 1)
	t.Cleanup(broker.Close)
	var all []any
	for _, f := range answers {
		all = append(all, f(broker.Addr()))
	}
	broker.SetHandlerByMap(map[string]sarama.MockResponse{
		"MetadataRequest":        sarama.NewMockSequence(all...),
		"FindCoordinatorRequest": sarama.NewMockFindCoordinatorResponse(t).SetCoordinator(sarama.CoordinatorGroup, "g", broker),
	})
	cfg := sarama.NewConfig()
	cfg.ApiVersionsRequest = false
	d, err := newSaramaDriver([]string{broker.Addr()}, cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, broker
}

// told returns metadata of topic "t": its leaders by partition, or a code.
func toldTopic(code sarama.KError, id byte, leaders ...int32) func(string) *sarama.MetadataResponse {
	return func(addr string) *sarama.MetadataResponse {
		r := &sarama.MetadataResponse{Version: 11, ControllerID: 1}
		r.AddBroker(addr, 1)
		topic := &sarama.TopicMetadata{Version: 11, Err: code, Name: "t", Uuid: sarama.Uuid{id}}
		for p, leader := range leaders {
			topic.Partitions = append(topic.Partitions, &sarama.PartitionMetadata{Version: 11, ID: int32(p), Leader: leader, LeaderEpoch: 4, Replicas: []int32{1, 2}, Isr: []int32{1}, OfflineReplicas: []int32{}})
		}
		r.Topics = append(r.Topics, topic)
		return r
	}
}

func requests(b *sarama.MockBroker) int { return len(b.History()) }

// soon is a context that ends a test which would wait for ever.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestALeaderIsAskedForOnceUntilItIsInvalidated(t *testing.T) {
	d, broker := metadataBroker(t, toldTopic(sarama.ErrNoError, 1, 1, 1))
	for range 3 {
		for p := range int32(2) {
			addr, epoch, err := d.leader(soon(t), TopicPartition{"t", p})
			if err != nil || addr != broker.Addr() || epoch != 4 {
				t.Fatalf("leader of %d: %s, epoch %d, %v", p, addr, epoch, err)
			}
		}
	}
	if n := requests(broker); n != 1 {
		t.Errorf("%d requests", n)
	}
	d.invalidate("t")
	if _, _, err := d.leader(soon(t), TopicPartition{"t", 0}); err != nil || requests(broker) != 2 {
		t.Errorf("%d requests after one was invalidated, %v", requests(broker), err)
	}
}

func TestALeaderThatIsBeingElectedIsWaitedFor(t *testing.T) {
	d, broker := metadataBroker(t,
		toldTopic(sarama.ErrLeaderNotAvailable, 1), toldTopic(sarama.ErrNoError, 1, -1), toldTopic(sarama.ErrNoError, 1, 9), toldTopic(sarama.ErrNoError, 1, 1))
	addr, _, err := d.leader(soon(t), TopicPartition{"t", 0})
	if err != nil || addr != broker.Addr() || requests(broker) != 4 {
		t.Errorf("leader %s after %d requests, %v", addr, requests(broker), err)
	}
}

func TestWhatDoesNotExistIsToldAtOnceAndAskedForAgain(t *testing.T) {
	d, broker := metadataBroker(t, toldTopic(sarama.ErrUnknownTopicOrPartition, 0), toldTopic(sarama.ErrNoError, 1, 1))
	if _, _, err := d.leader(soon(t), TopicPartition{"t", 0}); !errors.Is(err, ErrUnknownTopic) {
		t.Fatalf("error %v", err)
	}
	if _, _, err := d.leader(soon(t), TopicPartition{"t", 0}); err != nil {
		t.Fatalf("the topic that was created meanwhile: %v", err)
	}
	if _, _, err := d.leader(soon(t), TopicPartition{"t", 7}); !errors.Is(err, ErrUnknownTopic) || requests(broker) != 2 {
		t.Errorf("a partition that does not exist: %v after %d requests", err, requests(broker))
	}
}

func TestManyWhoAskAtOnceShareRequests(t *testing.T) {
	d, broker := metadataBroker(t, toldTopic(sarama.ErrNoError, 1, 1))
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, _, err := d.leader(soon(t), TopicPartition{"t", 0}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := requests(broker); n > 3 {
		t.Errorf("%d requests for 50 who asked at once", n)
	}
}

func TestTopicsAreDescribedAndMissingOnesLeftOut(t *testing.T) {
	d, _ := metadataBroker(t, toldTopic(sarama.ErrNoError, 5, 1, -1), toldTopic(sarama.ErrUnknownTopicOrPartition, 0), toldTopic(sarama.ErrTopicAuthorizationFailed, 0))
	topics, err := d.Admin().Topics(soon(t), "t")
	if want := (Topic{Name: "t", ID: TopicID{5}, Partitions: 2, Replicas: 2}); err != nil || topics["t"] != want {
		t.Errorf("topic %+v, %v; want %+v", topics["t"], err, want)
	}
	if topics, err := d.Admin().Topics(soon(t), "t"); err != nil || len(topics) != 0 {
		t.Errorf("a missing topic: %+v, %v", topics, err)
	}
	if _, err := d.Admin().Topics(soon(t), "t"); !errors.Is(err, ErrNotAuthorized) {
		t.Errorf("a topic without the right to see it: %v", err)
	}
	if topics, err := d.Admin().Topics(soon(t)); err != nil || len(topics) != 0 {
		t.Errorf("no names: %+v, %v", topics, err)
	}
}

func TestACoordinatorIsAskedForOnceUntilItIsForgotten(t *testing.T) {
	d, broker := metadataBroker(t, toldTopic(sarama.ErrNoError, 1, 1))
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			d.forgetCoordinator(sarama.CoordinatorGroup, "g")
		}
		addr, err := d.coordinator(soon(t), sarama.CoordinatorGroup, "g")
		if err != nil || addr != broker.Addr() || requests(broker) != want {
			t.Errorf("coordinator %s after %d requests, %v; want %d", addr, requests(broker), err, want)
		}
	}
}
