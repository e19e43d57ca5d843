package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// adminTimeout is how long a broker may take to carry a change out before it
// answers; it goes on in the background.
const adminTimeout = 15 * time.Second

// saramaAdmin is the driver's Admin. All its state is in conns and in the
// driver's metadata, so it may be used from any goroutine.
type saramaAdmin struct {
	d       *saramaDriver
	conns   *conns
	inspect *conns // for what only newer brokers know, and what sarama does not
}

func newSaramaAdmin(d *saramaDriver) *saramaAdmin {
	return &saramaAdmin{d: d, conns: d.newConns("admin").patient(adminTimeout), inspect: d.newConns("inspection").inspecting()}
}

func (a *saramaAdmin) close() {
	a.conns.close()
	a.inspect.close()
}

func (a *saramaAdmin) Topics(ctx context.Context, names ...string) (map[string]Topic, error) {
	topics := make(map[string]Topic, len(names))
	if len(names) == 0 {
		return topics, nil
	}
	found, err := a.d.describe(ctx, names...)
	if err != nil {
		return nil, err
	}
	for name, meta := range found {
		t := Topic{Name: name, ID: meta.id, Partitions: int32(len(meta.parts))}
		if len(meta.parts) > 0 {
			t.Replicas = meta.parts[0].replicas
		}
		topics[name] = t
	}
	return topics, nil
}

func (a *saramaAdmin) Configs(ctx context.Context, topic string) (map[string]string, error) {
	var configs map[string]string
	err := a.d.retry(ctx, "reading the settings of topic "+topic, func() error {
		var answer *sarama.DescribeConfigsResponse
		if err := a.onController(ctx, topic, func(b *sarama.Broker) (err error) {
			answer, err = b.DescribeConfigs(&sarama.DescribeConfigsRequest{
				Version: 2, Resources: []*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic}},
			})
			return err
		}); err != nil {
			return err
		}
		if len(answer.Resources) != 1 {
			return sarama.ErrIncompleteResponse
		}
		r := answer.Resources[0]
		if code := sarama.KError(r.ErrorCode); code != sarama.ErrNoError {
			return told(code, &r.ErrorMsg)
		}
		configs = make(map[string]string, len(r.Configs))
		for _, c := range r.Configs {
			configs[c.Name] = c.Value
		}
		return nil
	})
	if err != nil {
		return nil, topicError(topic, err)
	}
	return configs, nil
}

func (a *saramaAdmin) CreateTopics(ctx context.Context, specs ...TopicSpec) error {
	var errs []error
	wait := map[string]int32{}
	for _, spec := range specs { // one request each: a retry must not find those created that succeeded
		if err := a.createTopic(ctx, spec); err != nil {
			errs = append(errs, err)
			if !errors.Is(err, ErrTopicExists) {
				continue
			}
			wait[spec.Name] = max(wait[spec.Name], 1) // it has the partitions that it has
			continue
		}
		wait[spec.Name] = max(spec.Partitions, 1)
	}
	return errors.Join(append(errs, a.awaitLeaders(ctx, wait))...)
}

func (a *saramaAdmin) createTopic(ctx context.Context, spec TopicSpec) error {
	asked := false // a request whose answer was lost may have created it
	err := a.d.retry(ctx, "creating topic "+spec.Name, func() error {
		again := asked
		asked = true
		var answer *sarama.CreateTopicsResponse
		if err := a.onController(ctx, spec.Name, func(b *sarama.Broker) (err error) {
			details := map[string]*sarama.TopicDetail{spec.Name: topicDetail(spec)}
			answer, err = b.CreateTopics(sarama.NewCreateTopicsRequest(a.d.cfg.Version, details, adminTimeout, false))
			return err
		}); err != nil {
			return err
		}
		switch e := answer.TopicErrors[spec.Name]; {
		case e == nil:
			return sarama.ErrIncompleteResponse
		case e.Err == sarama.ErrTopicAlreadyExists && again, e.Err == sarama.ErrNoError:
			return nil
		default:
			return told(e.Err, e.ErrMsg)
		}
	})
	a.d.invalidate(spec.Name)
	return topicError(spec.Name, err)
}

func topicDetail(spec TopicSpec) *sarama.TopicDetail {
	detail := &sarama.TopicDetail{NumPartitions: -1, ReplicationFactor: -1, ConfigEntries: map[string]*string{}}
	if spec.Partitions > 0 {
		detail.NumPartitions = spec.Partitions
	}
	if spec.Replicas > 0 {
		detail.ReplicationFactor = spec.Replicas
	}
	for k, v := range spec.Configs {
		detail.ConfigEntries[k] = &v
	}
	return detail
}

// awaitLeaders waits until each topic has that many partitions with leaders,
// and no partition without.
func (a *saramaAdmin) awaitLeaders(ctx context.Context, want map[string]int32) error {
	for topic, n := range want {
		err := a.d.retry(ctx, "waiting for leaders of topic "+topic, func() error {
			found, err := a.d.describe(ctx, topic)
			if err != nil {
				return err
			}
			t := found[topic]
			if led := a.d.meta.led(topic); t == nil || led < n || int(led) < len(t.parts) {
				return sarama.ErrLeaderNotAvailable
			}
			return nil
		})
		if err != nil {
			return topicError(topic, err)
		}
	}
	return nil
}

func (a *saramaAdmin) CreatePartitions(ctx context.Context, topic string, n int32) error {
	asked := false
	err := a.d.retry(ctx, "adding partitions to topic "+topic, func() error {
		again := asked
		asked = true
		var answer *sarama.CreatePartitionsResponse
		if err := a.onController(ctx, topic, func(b *sarama.Broker) (err error) {
			answer, err = b.CreatePartitions(&sarama.CreatePartitionsRequest{
				Version: 1, Timeout: adminTimeout, TopicPartitions: map[string]*sarama.TopicPartition{topic: {Count: n}},
			})
			return err
		}); err != nil {
			return err
		}
		e := answer.TopicPartitionErrors[topic]
		if e == nil {
			return sarama.ErrIncompleteResponse
		}
		if e.Err == sarama.ErrInvalidPartitions && again { // perhaps by the request before
			if found, err := a.d.describe(ctx, topic); err == nil && found[topic] != nil && int32(len(found[topic].parts)) == n {
				return nil
			}
		}
		return told(e.Err, e.ErrMsg)
	})
	if err != nil {
		return topicError(topic, err)
	}
	return a.awaitLeaders(ctx, map[string]int32{topic: n})
}

func (a *saramaAdmin) DeleteTopics(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, topicError(name, a.deleteTopic(ctx, name)))
	}
	return errors.Join(errs...)
}

func (a *saramaAdmin) deleteTopic(ctx context.Context, name string) error {
	asked := false
	defer a.d.invalidate(name)
	return a.d.retry(ctx, "deleting topic "+name, func() error {
		again := asked
		asked = true
		var answer *sarama.DeleteTopicsResponse
		if err := a.onController(ctx, name, func(b *sarama.Broker) (err error) {
			answer, err = b.DeleteTopics(&sarama.DeleteTopicsRequest{Version: 3, Topics: []string{name}, Timeout: adminTimeout})
			return err
		}); err != nil {
			return err
		}
		code, ok := answer.TopicErrorCodes[name]
		switch {
		case !ok:
			return sarama.ErrIncompleteResponse
		case code == sarama.ErrUnknownTopicOrPartition && again:
			return nil
		}
		return kerror(code)
	})
}

// onController runs f with the controller, which brokers of all versions
// take changes of topics at. Its metadata is refreshed with the topic's, so
// that one that moved is found when f is repeated.
func (a *saramaAdmin) onController(ctx context.Context, topic string, f func(*sarama.Broker) error) error {
	if err := a.d.meta.refresh(ctx, topic); err != nil {
		return err
	}
	addr := a.d.meta.controllerAddr()
	if addr == "" {
		return sarama.ErrNotController
	}
	return a.conns.do(ctx, addr, f)
}

// told is a broker's error with its own words behind it.
func told(code sarama.KError, message *string) error {
	err := kerror(code)
	if err == nil || message == nil || *message == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, *message)
}

func topicError(topic string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{TopicPartition: TopicPartition{topic, -1}, Offset: -1, Err: err}
}
