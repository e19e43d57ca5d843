package emitter

import (
	"sync"
	"time"

	"github.com/rekastream/reka/kafka"
)

// batch is a run of records for one partition, or of unplaced ones. While it
// is open, callers add to it under the sink's lock; afterwards it is the
// owner's.
type batch struct {
	lane    *lane // nil: unplaced
	since   time.Time
	records []kafka.Record
	results []*Result
	bytes   int  // as kafka.Record.Size counts
	done    int  // resolved results
	sent    bool // handed over, or about to be
	flushes []*flushing

	// chunk holds keys and values. A full one is replaced, never grown: the
	// records keep it alive.
	chunk []byte
}

const (
	batchBytes   = 1_000_000 // what a broker accepts by default, with room for framing
	minChunk     = 2 << 10
	maxChunk     = 64 << 10
	maxKeptBatch = 1 << 15 // records that a reused batch may have room for
)

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch(l *lane) *batch {
	b := batches.Get().(*batch)
	b.lane = l
	return b
}

// recycle is for batches whose last result is resolved: nobody refers to
// their bytes any more.
func (b *batch) recycle() {
	if cap(b.records) > maxKeptBatch {
		return
	}
	clear(b.records)
	clear(b.results)
	*b = batch{records: b.records[:0], results: b.results[:0], chunk: b.chunk[:0]}
	batches.Put(b)
}

// fits reports whether a record of size may join.
func (b *batch) fits(size int) bool { return len(b.records) == 0 || b.bytes+size <= batchBytes }

// add appends a record whose bytes stay as they are.
func (b *batch) add(rec kafka.Record, r *Result, size int) {
	b.records = append(b.records, rec)
	b.results = append(b.results, r)
	b.bytes += size
}

// own copies key and value into the batch, keeping null and empty apart.
func (b *batch) own(rec *kafka.Record) {
	need := len(rec.Key) + len(rec.Value)
	if b.chunk == nil || cap(b.chunk)-len(b.chunk) < need {
		size := min(max(2*cap(b.chunk), minChunk), maxChunk)
		b.chunk = make([]byte, 0, max(size, need))
	}
	rec.Key = b.copied(rec.Key)
	rec.Value = b.copied(rec.Value)
}

func (b *batch) copied(p []byte) []byte {
	if p == nil {
		return nil
	}
	from := len(b.chunk)
	b.chunk = append(b.chunk, p...)
	return b.chunk[from:len(b.chunk):len(b.chunk)]
}
