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
)

// keys returns a generator of key numbers; the same one in every run.
func (s spread) keys() func() uint64 {
	r := rand.New(rand.NewSource(1))
	switch s {
	case zipf:
		z := rand.NewZipf(r, 1.1, 1, 99_999)
		return z.Uint64
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
	for i := range n {
		at := i * 31 % (len(letters) - size)
		cl.Produce(ctx, &kgo.Record{Key: appendKey(make([]byte, 0, keyBytes), key()), Value: letters[at : at+size]}, func(_ *kgo.Record, err error) {
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
	b.loaded[kind] = topic
	return topic, nil
}
