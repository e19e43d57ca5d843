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

// inspection is a question of Admin about open transactions or leader epochs.
type inspection struct {
	name string
	key  kmsg.Key
	ask  func(*rig) error
}

var inspections = []inspection{
	{"writers", kmsg.DescribeProducers, askWriters},
	{"names of writers", kmsg.ListTransactions, askWriters},
	{"end of an epoch", kmsg.OffsetForLeaderEpoch, func(r *rig) error {
		epoch, end, err := r.client.Driver().Admin().EpochEnd(r.ctx(20*time.Second), r.partition(0), 0)
		if err == nil && (epoch < 0 || end < 1) {
			return fmt.Errorf("epoch %d ends at %d", epoch, end)
		}
		return err
	}},
}

func (r *rig) partition(p int32) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: r.topic, Partition: p}
}

// askWriters wants the open transaction of the rig to be told.
func askWriters(r *rig) error {
	got, err := r.client.Driver().Admin().Writers(r.ctx(20*time.Second), r.partition(0), r.partition(1))
	if err != nil {
		return err
	}
	for p := range int32(2) {
		if ws := got[r.partition(p)]; len(ws) != 1 || ws[0].TransactionalID != r.cfg.ID {
			return fmt.Errorf("writers of %d: %+v", p, ws)
		}
	}
	return nil
}

// Leaders that move and coordinators that load are asked again; what is a
// decision comes out, typed.
func TestEachCodeOfAnInspectionLeadsToItsOutcome(t *testing.T) {
	t.Parallel()
	leader := map[*kerr.Error]error{
		kerr.NotLeaderForPartition: nil, kerr.LeaderNotAvailable: nil, kerr.KafkaStorageError: nil, kerr.UnknownTopicOrPartition: nil,
		kerr.FencedLeaderEpoch: nil, kerr.UnknownLeaderEpoch: nil, kerr.OffsetNotAvailable: nil,
		kerr.TopicAuthorizationFailed: kafka.ErrNotAuthorized, kerr.UnsupportedVersion: kafka.ErrUnsupported,
	}
	coordinator := map[*kerr.Error]error{
		kerr.CoordinatorLoadInProgress: nil, kerr.CoordinatorNotAvailable: nil, kerr.RequestTimedOut: nil,
		kerr.TransactionalIDAuthorizationFailed: kafka.ErrNotAuthorized, kerr.UnsupportedVersion: kafka.ErrUnsupported,
	}
	for _, in := range inspections {
		codes := leader
		if in.key == kmsg.ListTransactions {
			codes = coordinator
		}
		for code, want := range codes {
			t.Run(fmt.Sprint(in.name, " ", code.Message), func(t *testing.T) {
				t.Parallel()
				r := onFake(t, 1)
				if err := r.records(r.tx).err(t); err != nil {
					t.Fatal(err)
				}
				hits := answerOnce(r, in.key, code)
				err := in.ask(r)
				if hits() == 0 {
					t.Fatal("the code was not answered")
				}
				if want == nil && err != nil || !errors.Is(err, want) {
					t.Errorf("error %v, want %v", err, want)
				}
			})
		}
	}
}

// answerOnce has the next request of a kind answered with a code.
func answerOnce(r *rig, key kmsg.Key, code *kerr.Error) (hits func() int) {
	if key != kmsg.ListTransactions {
		fault := r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: code, Count: 1})
		return fault.Hits
	}
	n := make(chan struct{}, 1) // one answer
	r.fake.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
		answer := req.ResponseKind().(*kmsg.ListTransactionsResponse)
		answer.ErrorCode = code.Code
		n <- struct{}{}
		return answer, nil, true
	})
	return func() int { return len(n) }
}

// A broker that does not know the requests (older than 3.0) is told apart
// from one that is away, at once.
func TestBrokersThatCannotTellAreUnsupported(t *testing.T) {
	for _, in := range inspections {
		t.Run(in.name, func(t *testing.T) {
			r := onFake(t, 1)
			r.fake.ControlKey(int16(kmsg.ApiVersions), func(req kmsg.Request) (kmsg.Response, error, bool) {
				r.fake.KeepControl()
				return knownBut(req, int16(in.key)), nil, true
			})
			if err := r.records(r.tx).err(t); err != nil {
				t.Fatal(err)
			}
			if err := in.ask(r); !errors.Is(err, kafka.ErrUnsupported) {
				t.Errorf("error %v, want ErrUnsupported", err)
			}
		})
	}
}

// knownBut answers a request for versions with what the client needs here,
// but for one key.
func knownBut(req kmsg.Request, key int16) kmsg.Response {
	answer := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	for k := range int16(67) {
		if k != key {
			known := kmsg.NewApiVersionsResponseApiKey()
			known.ApiKey, known.MaxVersion = k, kmsg.RequestForKey(k).MaxVersion()
			answer.ApiKeys = append(answer.ApiKeys, known)
		}
	}
	return answer
}

// With several brokers the ids are with any of them.
func TestWritersAreNamedByWhicheverBrokerKnowsThem(t *testing.T) {
	r := onFake(t, 3)
	var others []kafka.Transactor
	want := map[string]bool{}
	for i := range 12 {
		cfg := kafka.TransactorConfig{ID: fmt.Sprint(r.topic, "-", i)}
		x := r.newTransactor(r.client, cfg)
		if err := x.Init(r.ctx(20*time.Second), false); err != nil {
			t.Fatal(err)
		}
		if err := r.records(x).err(t); err != nil {
			t.Fatal(err)
		}
		others = append(others, x)
		want[cfg.ID] = true
	}
	got, err := r.client.Driver().Admin().Writers(r.ctx(20*time.Second), r.partition(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range got[r.partition(0)] {
		if !want[w.TransactionalID] {
			t.Errorf("writer %+v is told twice, or not one", w)
		}
		delete(want, w.TransactionalID)
	}
	if len(want) != 0 {
		t.Errorf("not told: %v", want)
	}
	for _, x := range others {
		if err := x.End(r.ctx(20*time.Second), true); err != nil {
			t.Fatal(err)
		}
	}
}

// A reader whose log was cut below its position, and grew again, must learn
// it: the offsets alone are as they were.
func TestALogThatWasCutUnderAReaderEndsItsFollowing(t *testing.T) {
	for _, c := range []struct {
		name string
		end  int64 // of the old epoch, as the new leader tells
		cut  bool
	}{{"below the position", 1, true}, {"at the position", 2, false}} {
		t.Run(c.name, func(t *testing.T) {
			r := onFake(t, 1)
			tp := r.partition(0)
			f, err := r.client.Driver().NewFetcher(kafka.FetcherConfig{MaxWait: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			batches := make(chan *kafka.Batch, 1000) // more than will come
			f.Follow(kafka.Follow{TopicPartition: tp, Deliver: func(b *kafka.Batch) { batches <- b }})
			r.commit() // a record and a marker
			r.await(batches, func(b *kafka.Batch) bool { return b.Position == 2 })
			if err := r.fake.MoveTopicPartition(tp.Topic, tp.Partition, r.fake.LeaderFor(tp.Topic, tp.Partition)); err != nil {
				t.Fatal(err)
			}
			r.fake.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
				return epochEnds(req, c.end), nil, true
			})
			r.commit()
			last := r.await(batches, func(b *kafka.Batch) bool { return b.Err != nil || b.Position == 4 })
			var cut *kafka.TruncatedError
			switch {
			case !c.cut && last.Err != nil:
				t.Errorf("error %v", last.Err)
			case c.cut && (!errors.As(last.Err, &cut) || cut.Position != 2 || cut.End != 1 || cut.HighWatermark != 4):
				t.Errorf("error %v, want a TruncatedError", last.Err)
			}
		})
	}
}

// await returns the first batch that is so.
func (r *rig) await(batches <-chan *kafka.Batch, so func(*kafka.Batch) bool) *kafka.Batch {
	r.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case b := <-batches:
			b.Release()
			if so(b) {
				return b
			}
		case <-deadline:
			r.t.Fatal("the batch does not come")
		}
	}
}

// epochEnds answers a request for the end of an epoch.
func epochEnds(req kmsg.Request, end int64) kmsg.Response {
	asked := req.(*kmsg.OffsetForLeaderEpochRequest)
	answer := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, t := range asked.Topics {
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			part := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			part.Partition, part.LeaderEpoch, part.EndOffset = p.Partition, p.LeaderEpoch, end
			topic.Partitions = append(topic.Partitions, part)
		}
		answer.Topics = append(answer.Topics, topic)
	}
	return answer
}
