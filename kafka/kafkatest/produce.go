package kafkatest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/rekastream/reka/kafka"
)

var produceCases = []testCase{
	{"order is the order of Produce", testProduceOrder},
	{"many records in one call are cut and stay in order", testProduceCut},
	{"partitions do not mix", testProducePartitions},
	{"a record too large fails alone", testProduceTooLarge},
	{"null and empty stay apart", testProduceNulls},
	{"every compression comes back", testProduceCompressions},
	{"timestamps and headers are exact", testProduceFields},
	{"an unknown topic is an error", testProduceUnknownTopic},
	{"a null key is refused by a compacted topic", testProduceInvalidRecord},
	{"close fails what comes later", testProduceClose},
	{"two producers of two processes", testProduceTwo},
}

// Records of a partition keep the order of Produce, also when nobody waits
// between the calls, and the offsets told are where the records are.
func testProduceOrder(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{})
	var all []*sent
	for i := range 200 {
		all = append(all, o.produce(tp, numbered(i*5, 5)...))
	}
	o.wait(t)
	next := int64(0)
	for i, s := range all {
		for _, off := range o.must(t, s) {
			if off != next {
				t.Fatalf("call %d: offset %d, want %d", i, off, next)
			}
			next++
		}
	}
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	wantNumbered(t, in.waitRecords(t, 1000), 0, 1000)
}

// BatchBytes bounds a batch, not a call: a call over it becomes several runs.
func testProduceCut(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{BatchBytes: 10_000, Compression: kafka.NoCompression})
	rs := make([]kafka.Record, 100)
	for i := range rs {
		rs[i] = kafka.Record{Key: fmt.Appendf(nil, "%d", i), Value: bytes.Repeat([]byte{byte(i)}, 1000)}
	}
	rs[50].Value = bytes.Repeat([]byte{50}, 30_000) // larger than BatchBytes: goes alone
	for i, off := range o.must(t, o.produce(tp, rs...)) {
		if off != int64(i) {
			t.Fatalf("record %d at offset %d", i, off)
		}
	}
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	for i, r := range in.waitRecords(t, 100) {
		if !bytes.Equal(r.Value, rs[i].Value) {
			t.Fatalf("record %d has another value", i)
		}
	}
}

// Each partition has an order and offsets of its own.
func testProducePartitions(t *testing.T, e Env) {
	topic := e.topic(t, 4)
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{})
	for i := range 50 {
		for p := range int32(4) {
			o.produce(kafka.TopicPartition{Topic: topic, Partition: p}, numbered(int(p)*1000+i, 1)...)
		}
	}
	o.wait(t)
	f := newFetcher(t, e.Driver, kafka.FetcherConfig{})
	for p := range int32(4) {
		in := follow(f, kafka.TopicPartition{Topic: topic, Partition: p}, 0)
		wantNumbered(t, in.waitRecords(t, 50), int(p)*1000, 50)
	}
}

// What the broker refuses as too large is narrowed down to the record that
// is: the small ones around it are written, once and in order.
func testProduceTooLarge(t *testing.T, e Env) {
	e.need(t, MessageLimit)
	tp := kafka.TopicPartition{Topic: e.topic(t, 1, "max.message.bytes", "20000")}
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{Compression: kafka.NoCompression})
	rs := numbered(0, 20)
	rs[7].Value = bytes.Repeat([]byte("x"), 40_000)
	s := o.produce(tp, rs...)
	after := o.produce(tp, numbered(20, 1)...)
	o.wait(t)
	fates := make([]error, len(rs))
	for _, r := range s.runs {
		for i := r.From; i < r.To; i++ {
			fates[i] = r.Err
		}
	}
	for i, err := range fates {
		if i == 7 && !errors.Is(err, kafka.ErrTooLarge) {
			t.Fatalf("large record: %v, want ErrTooLarge", err)
		}
		if i != 7 && err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	o.must(t, after)
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	got := in.waitRecords(t, 20)
	for i, r := range got {
		n := i
		if i >= 7 {
			n++
		}
		if want := fmt.Sprintf("k%d", n); string(r.Key) != want || r.Offset != int64(i) {
			t.Fatalf("offset %d holds %s, want %s at %d", r.Offset, r.Key, want, i)
		}
	}
}

// A null is not an empty value: one deletes a row, the other is a row.
func testProduceNulls(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	rs := []kafka.Record{
		{Key: nil, Value: nil}, {Key: []byte{}, Value: nil}, {Key: nil, Value: []byte{}}, {Key: []byte{}, Value: []byte{}},
		{Key: bytes.Repeat([]byte("k"), 70_000), Value: []byte("long key")},
	}
	write(t, e, tp, rs...)
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	for i, r := range in.waitRecords(t, len(rs)) {
		if (r.Key == nil) != (rs[i].Key == nil) || (r.Value == nil) != (rs[i].Value == nil) {
			t.Fatalf("record %d: null key %t, null value %t", i, r.Key == nil, r.Value == nil)
		}
		if !bytes.Equal(r.Key, rs[i].Key) || !bytes.Equal(r.Value, rs[i].Value) {
			t.Fatalf("record %d changed", i)
		}
	}
}

// The compressions of Kafka differ in framing: each is written and read.
func testProduceCompressions(t *testing.T, e Env) {
	for _, c := range []kafka.Compression{kafka.LZ4, kafka.NoCompression, kafka.Gzip, kafka.Snappy, kafka.Zstd} {
		tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
		o := newOutbox(t, e.Driver, kafka.ProducerConfig{Compression: c})
		o.must(t, o.produce(tp, numbered(0, 300)...))
		in := follow(newFetcher(t, e.Second, kafka.FetcherConfig{}), tp, 0)
		wantNumbered(t, in.waitRecords(t, 300), 0, 300)
	}
}

// Timestamps decide joins and windows, so none may be rounded or replaced,
// epoch zero included; headers keep order, duplicates and nulls.
func testProduceFields(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	before := e.Driver.Clock().Now().UnixMilli()
	headers := []kafka.Header{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")}, {Key: "", Value: []byte{}}, {Key: "n", Value: nil}}
	write(t, e, tp,
		kafka.Record{Key: []byte("old"), Timestamp: 0, Headers: headers},
		kafka.Record{Key: []byte("exact"), Timestamp: 1_699_999_999_999},
		kafka.Record{Key: []byte("none"), Timestamp: -1})
	after := e.Driver.Clock().Now().UnixMilli()
	got := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	rs := got.waitRecords(t, 3)
	if rs[0].Timestamp != 0 || rs[1].Timestamp != 1_699_999_999_999 {
		t.Fatalf("timestamps %d and %d", rs[0].Timestamp, rs[1].Timestamp)
	}
	if ts := rs[2].Timestamp; ts < before || ts > after {
		t.Fatalf("record without a time got %d, want the clock's, in [%d, %d]", ts, before, after)
	}
	if len(rs[0].Headers) != len(headers) || len(rs[1].Headers) != 0 {
		t.Fatalf("headers %v and %v", rs[0].Headers, rs[1].Headers)
	}
	for i, h := range rs[0].Headers {
		w := headers[i]
		if h.Key != w.Key || !bytes.Equal(h.Value, w.Value) || (h.Value == nil) != (w.Value == nil) {
			t.Fatalf("header %d is %+v, want %+v", i, h, w)
		}
	}
}

// A topic or partition that is not there is reported; it neither hangs nor
// creates the topic.
func testProduceUnknownTopic(t *testing.T, e Env) {
	name, there := e.name("missing"), e.topic(t, 1)
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{})
	all := []*sent{
		o.produce(kafka.TopicPartition{Topic: name}, numbered(0, 3)...),
		o.produce(kafka.TopicPartition{Topic: there, Partition: 9}, numbered(0, 3)...),
	}
	good := o.produce(kafka.TopicPartition{Topic: there}, numbered(0, 3)...)
	o.wait(t)
	for _, s := range all {
		for _, r := range s.runs {
			if !errors.Is(r.Err, kafka.ErrUnknownTopic) {
				t.Fatalf("%s: %v, want ErrUnknownTopic", s.TopicPartition, r.Err)
			}
		}
	}
	o.must(t, good)
	if got, err := e.Driver.Admin().Topics(ctx(t), name); err != nil || len(got) != 0 {
		t.Fatalf("topics %v, %v: producing must not create one", got, err)
	}
}

// A compacted topic cannot hold a record without a key.
func testProduceInvalidRecord(t *testing.T, e Env) {
	e.need(t, RecordChecks)
	tp := kafka.TopicPartition{Topic: e.topic(t, 1, "cleanup.policy", "compact")}
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{})
	bad := o.produce(tp, kafka.Record{Key: nil, Value: []byte("v")})
	o.wait(t)
	if err := bad.runs[0].Err; !errors.Is(err, kafka.ErrInvalidRecord) {
		t.Fatalf("error %v, want ErrInvalidRecord", err)
	}
	o.must(t, o.produce(tp, numbered(0, 2)...))
}

// After Close every record still has a fate: ErrClosed.
func testProduceClose(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	o := newOutbox(t, e.Driver, kafka.ProducerConfig{})
	o.produce(tp, numbered(0, 5)...)
	if err := o.p.Close(); err != nil {
		t.Fatal(err)
	}
	late := o.produce(tp, numbered(5, 5)...)
	o.wait(t)
	for _, r := range late.runs {
		if !errors.Is(r.Err, kafka.ErrClosed) {
			t.Fatalf("after close: %v, want ErrClosed", r.Err)
		}
	}
	if err := o.p.Close(); err != nil {
		t.Fatalf("second close: %v", err)
	}
}

// Two writers of one partition interleave by batches; each one's records
// keep their order and nothing is lost.
func testProduceTwo(t *testing.T, e Env) {
	tp := kafka.TopicPartition{Topic: e.topic(t, 1)}
	a, b := newOutbox(t, e.Driver, kafka.ProducerConfig{}), newOutbox(t, e.Second, kafka.ProducerConfig{})
	for i := range 50 {
		a.produce(tp, numbered(i, 1)...)
		b.produce(tp, numbered(1000+i, 1)...)
	}
	a.wait(t)
	b.wait(t)
	in := follow(newFetcher(t, e.Driver, kafka.FetcherConfig{}), tp, 0)
	nextA, nextB := 0, 1000
	for _, r := range in.waitRecords(t, 100) {
		switch string(r.Key) {
		case fmt.Sprintf("k%d", nextA):
			nextA++
		case fmt.Sprintf("k%d", nextB):
			nextB++
		default:
			t.Fatalf("offset %d: %s, want k%d or k%d", r.Offset, r.Key, nextA, nextB)
		}
	}
}
