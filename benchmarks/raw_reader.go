package main

import (
	"fmt"

	"github.com/IBM/sarama"
)

// rawReader reads all partitions of a topic over one connection, one answer
// ahead of who takes them. It does no more than reading can cost.
type rawReader struct {
	topic   string
	broker  *sarama.Broker
	next    []int64        // by partition
	answers chan rawAnswer // capacity 1: the answer that is ahead
	quit    chan struct{}  // closed by close
	ended   chan struct{}  // closed when the goroutine has ended
}

type rawAnswer struct {
	blocks map[int32]*sarama.FetchResponseBlock
	err    error
}

// dial opens a connection.
func dial(addr string) (*sarama.Broker, error) {
	cfg := sarama.NewConfig()
	cfg.Version, cfg.Net.MaxOpenRequests = sarama.V2_8_0_0, 5
	b := sarama.NewBroker(addr)
	if err := b.Open(cfg); err != nil {
		return nil, err
	}
	_, err := b.Connected()
	return b, err
}

// newRawReader starts at the given positions.
func newRawReader(addr, topic string, from []int64) (*rawReader, error) {
	broker, err := dial(addr)
	if err != nil {
		return nil, err
	}
	r := &rawReader{topic: topic, broker: broker, next: from,
		answers: make(chan rawAnswer, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	go r.loop() // ends with close, which waits for it
	return r, nil
}

func (r *rawReader) loop() {
	defer close(r.ended)
	for {
		a := r.fetch()
		select {
		case r.answers <- a:
		case <-r.quit:
			return
		}
		if a.err != nil {
			return
		}
	}
}

func (r *rawReader) fetch() rawAnswer {
	req := &sarama.FetchRequest{Version: 11, MaxWaitTime: 100, MinBytes: 1, MaxBytes: 8 << 20, Isolation: sarama.ReadCommitted}
	for p := range r.next {
		req.AddBlock(r.topic, int32(p), r.next[p], 1<<20, -1)
	}
	resp, err := r.broker.Fetch(req)
	if err != nil {
		return rawAnswer{err: err}
	}
	blocks := resp.Blocks[r.topic]
	for p, block := range blocks {
		if block.Err != sarama.ErrNoError {
			return rawAnswer{err: fmt.Errorf("fetch %s/%d: %w", r.topic, p, block.Err)}
		}
		for _, set := range block.RecordsSet {
			r.next[p] = max(r.next[p], set.RecordBatch.LastOffset()+1)
		}
	}
	return rawAnswer{blocks: blocks}
}

func (r *rawReader) close() {
	close(r.quit)
	_ = r.broker.Close() // ends a request that waits
	<-r.ended
}
