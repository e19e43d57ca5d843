package main

import (
	"context"
	"encoding/binary"
	"math/rand"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// spread is how the keys of a topic are chosen.
type spread int

const (
	zipf    spread = iota // 100,000 keys, exponent 1.1
	uniform               // 1,000,000 keys
	each                  // every record has a key of its own
	hour                  // as zipf, stamped evenly over an hour
	minutes               // 1,000 keys, stamped evenly over ten minutes
	pairs                 // as each, stamped evenly over an hour
)

// stamps is over how much event time a topic's records are spread, the last
// one stamped now; 0: when they are written.
func (s spread) stamps() time.Duration {
	switch s {
	case hour, pairs:
		return time.Hour
	case minutes:
		return 10 * time.Minute
	}
	return 0
}

// keys returns a generator of key numbers; the same one in every run.
func (s spread) keys() func() uint64 {
	r := rand.New(rand.NewSource(1))
	switch s {
	case zipf, hour:
		z := rand.NewZipf(r, 1.1, 1, 99_999)
		return z.Uint64
	case minutes:
		return func() uint64 { return uint64(r.Int63n(1000)) }
	case uniform:
		return func() uint64 { return uint64(r.Int63n(1_000_000)) }
	}
	next := uint64(0)
	return func() uint64 { next++; return next - 1 }
}

// keyBytes is the length of keys.
const keyBytes = 12

// appendKey appends a key of keyBytes bytes.
func appendKey(dst []byte, n uint64) []byte {
	dst = append(dst, "key-00000000"...)
	for i := len(dst) - 1; n > 0; i-- {
		dst[i] = '0' + byte(n%10)
		n /= 10
	}
	return dst
}

// text returns letters to cut values from: they compress a little, as real
// ones do.
func text() []byte {
	r := rand.New(rand.NewSource(2))
	b := make([]byte, 1<<20)
	for i := range b {
		b[i] = 'a' + byte(r.Intn(26))
	}
	return b
}

// valueBytes is the length of the values of throughput runs.
const valueBytes = 100

// load fills a topic of its own with n records, once for each kind.
func (b *bench) load(ctx context.Context, s spread, n, size int) (string, error) {
	kind := string(binary.AppendUvarint(binary.AppendUvarint([]byte{byte(s)}, uint64(n)), uint64(size)))
	if topic := b.loaded[kind]; topic != "" {
		return topic, nil
	}
	topic, err := b.fill(ctx, s, n, size)
	if err == nil {
		b.loaded[kind] = topic
	}
	return topic, err
}

// fill makes a topic of n records.
func (b *bench) fill(ctx context.Context, s spread, n, size int) (string, error) {
	topic := b.name("input")
	if err := b.create(ctx, topic); err != nil {
		return "", err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.MaxBufferedRecords(100_000), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return "", err
	}
	defer cl.Close()
	var failed atomic.Pointer[error]
	key, letters := s.keys(), text()
	span, first := s.stamps(), time.Now().Add(-s.stamps())
	for i := range n {
		at := i * 31 % (len(letters) - size)
		r := &kgo.Record{Key: appendKey(make([]byte, 0, keyBytes), key()), Value: letters[at : at+size]}
		if span > 0 {
			r.Timestamp = first.Add(span / time.Duration(n) * time.Duration(i))
		}
		cl.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return "", err
	}
	if err := failed.Load(); err != nil {
		return "", *err
	}
	return topic, nil
}
