package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// rawWriter writes whole batches to one topic: acks from all, lz4, five
// requests in flight.
type rawWriter struct {
	topic  string
	broker *sarama.Broker
	window chan struct{} // holds a token for each request in flight
	flying sync.WaitGroup
	txn    *rawTransactions // nil: none

	mu  sync.Mutex
	err error // the first one; guarded by mu
}

func newRawWriter(addr, topic string) (*rawWriter, error) {
	broker, err := dial(addr)
	return &rawWriter{topic: topic, broker: broker, window: make(chan struct{}, 5)}, err
}

// batchBytes is where the raw loops cut batches.
const batchBytes = 900_000

// send writes one batch. Records must not change until it is acknowledged.
func (w *rawWriter) send(p int32, records []*sarama.Record) error {
	for i, r := range records {
		r.OffsetDelta = int64(i)
	}
	now := time.Now()
	batch := &sarama.RecordBatch{
		Version: 2, Codec: sarama.CompressionLZ4, CompressionLevel: sarama.CompressionLevelDefault,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		FirstTimestamp: now, MaxTimestamp: now, LastOffsetDelta: int32(len(records) - 1), Records: records,
	}
	req := &sarama.ProduceRequest{Version: 7, RequiredAcks: sarama.WaitForAll, Timeout: 10_000}
	if w.txn != nil {
		w.txn.stamp(req, batch, p)
	}
	req.AddBatch(w.topic, p, batch)
	w.window <- struct{}{}
	w.flying.Add(1)
	err := w.broker.AsyncProduce(req, func(resp *sarama.ProduceResponse, err error) {
		if err == nil {
			if e := resp.Blocks[w.topic][p].Err; e != sarama.ErrNoError {
				err = fmt.Errorf("produce to %s/%d: %w", w.topic, p, e)
			}
		}
		w.fail(err)
		<-w.window
		w.flying.Done()
	})
	if err != nil {
		<-w.window
		w.flying.Done()
	}
	return err
}

func (w *rawWriter) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// flush waits until everything is acknowledged.
func (w *rawWriter) flush() error {
	w.flying.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *rawWriter) close() {
	_ = w.broker.Close() // everything was flushed
	if w.txn != nil {
		w.txn.close()
	}
}
