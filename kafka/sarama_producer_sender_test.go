package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

func testSender() *produceSender {
	return &produceSender{p: &saramaProducer{d: &saramaDriver{clock: SystemClock()}, codec: sarama.CompressionLZ4}}
}

func requestOf(records ...Record) *produceRequest {
	b := &produceBatch{}
	b.add(span{records: records}, sizeOf(records))
	return &produceRequest{parts: []producePart{{q: testQueue(1 << 20), b: b}}}
}

func TestBuildKeepsTimestampsToTheMillisecond(t *testing.T) {
	times := []int64{1_700_000_000_123, 0, maxTimestamp, 5, 1_700_000_000_122}
	records := make([]Record, len(times))
	for i, at := range times {
		records[i].Timestamp = at
	}
	req := requestOf(records...)
	testSender().build(req)
	e := req.parts[0].b.encoded
	for i, at := range times {
		got := e.FirstTimestamp.UnixMilli() + int64(e.Records[i].TimestampDelta/time.Millisecond)
		if got != at {
			t.Errorf("record %d: timestamp %d, want %d", i, got, at)
		}
	}
	if e.MaxTimestamp.UnixMilli() != maxTimestamp || e.MaxTimestamp.UnixNano() < 0 {
		t.Errorf("latest timestamp %v", e.MaxTimestamp)
	}
}

func TestBuildTakesTheClockForNoTimestamp(t *testing.T) {
	before := time.Now().UnixMilli()
	req := requestOf(Record{Timestamp: -1}, Record{Timestamp: -1})
	testSender().build(req)
	e := req.parts[0].b.encoded
	if at := e.FirstTimestamp.UnixMilli(); at < before || at > time.Now().UnixMilli() || e.Records[1].TimestampDelta != 0 {
		t.Fatalf("timestamps %v and %v later", e.FirstTimestamp, e.Records[1].TimestampDelta)
	}
}

func TestBuildKeepsHeadersOverGrowingSlabs(t *testing.T) {
	var records []Record
	for i := range 100 {
		records = append(records, Record{Headers: []Header{{Key: fmt.Sprint("k", i), Value: []byte{byte(i)}}, {Key: "", Value: nil}}})
	}
	req := requestOf(records...)
	testSender().build(req)
	for i, r := range req.parts[0].b.encoded.Records {
		h := r.Headers
		if len(h) != 2 || string(h[0].Key) != fmt.Sprint("k", i) || h[0].Value[0] != byte(i) || h[1].Key == nil || h[1].Value != nil {
			t.Fatalf("record %d: headers %+v", i, h)
		}
	}
}

func TestBuildCountsOffsetsInEachBatchAlone(t *testing.T) {
	s := testSender()
	req := requestOf(make([]Record, 3)...)
	req.parts = append(req.parts, requestOf(make([]Record, 2)...).parts...)
	if fresh := s.build(req); len(fresh) != 2 {
		t.Fatalf("%d batches built", len(fresh))
	}
	for _, part := range req.parts {
		e := part.b.encoded
		if len(e.Records) != part.b.count || e.LastOffsetDelta != int32(part.b.count-1) {
			t.Fatalf("batch of %d: %d records, last %d", part.b.count, len(e.Records), e.LastOffsetDelta)
		}
		for i, r := range e.Records {
			if r.OffsetDelta != int64(i) {
				t.Fatalf("record %d has offset %d", i, r.OffsetDelta)
			}
		}
	}
	kept := req.parts[0].b.encoded
	s.clear()
	if fresh := s.build(req); len(fresh) != 0 || req.parts[0].b.encoded != kept {
		t.Fatal("a batch that was built must be sent as it is")
	}
}

func TestBuildAllocatesNothingPerRecord(t *testing.T) {
	s := testSender()
	records := make([]Record, 5000)
	for i := range records {
		records[i] = Record{Key: []byte("key"), Value: []byte("value"), Timestamp: int64(i), Headers: []Header{{Key: "h", Value: []byte("v")}}}
	}
	req := requestOf(records...)
	round := func() {
		req.parts[0].b.encoded = nil
		s.build(req)
		s.clear()
	}
	round()
	if allocs := testing.AllocsPerRun(10, round); allocs > 5 {
		t.Fatalf("%.0f allocations for a batch of %d records", allocs, len(records))
	}
}

func TestFormAllocatesNothingPerRecord(t *testing.T) {
	q := testQueue(1 << 30)
	o := Outgoing{Records: make([]Record, 5000), Done: func(Run) {}}
	round := func() {
		q.push(o, time.Time{})
		q.next()
		q.acked(0)
	}
	round()
	if allocs := testing.AllocsPerRun(10, round); allocs > 5 {
		t.Fatalf("%.0f allocations for a batch of %d records", allocs, len(o.Records))
	}
}
