package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
)

// broker is a Kafka inside this process, in memory, that listens on loopback.
type broker struct{ cluster *kfake.Cluster }

func startBroker() (*broker, error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	return &broker{c}, nil
}

func (b *broker) addresses() []string { return b.cluster.ListenAddrs() }

func (b *broker) close() { b.cluster.Close() }
