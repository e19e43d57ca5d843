package fakekafka

import (
	"slices"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
)

func TestTopicsSurviveAnOutageOnTheSamePorts(t *testing.T) {
	c := Start(t, Config{Brokers: 3, Options: []kfake.Opt{kfake.SeedTopics(4, "in")}})
	before := c.Brokers()
	c.Stop()
	if err := sarama.NewBroker(before[0]).Open(sarama.NewConfig()); err != nil {
		t.Fatal(err)
	}
	c.Restart(t)
	if now := c.Brokers(); !slices.Equal(before, now) {
		t.Errorf("brokers %v, before %v", now, before)
	}
	client, err := sarama.NewClient(c.Brokers(), sarama.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if p, err := client.Partitions("in"); err != nil || len(p) != 4 {
		t.Errorf("partitions %v, %v", p, err)
	}
}
