package kafka

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// decoded is what an answer brought of one partition.
type decoded struct {
	records  []Record
	position int64 // after it; where decoding failed, if it did
	epoch    int32 // leader epoch of the record batches, which is one; -1 if there is none
	bytes    int
	cut      bool // record batches were left because the budget is used up
	partial  bool // the first record batch was cut off by the broker
}

// decodeBlock takes the records from position on out of an answer, whole
// record batches of one leader epoch until they are left bytes or more. With committed it leaves
// out aborted transactions; control records it leaves out always.
func decodeBlock(block *sarama.FetchResponseBlock, position int64, committed bool, left int) (decoded, error) {
	d := decoded{position: position, epoch: -1, partial: block.Partial}
	filter := abortedFilter{}
	if committed {
		filter = newAbortedFilter(block.AbortedTransactions)
	}
	taken := make([]*sarama.RecordBatch, 0, len(block.RecordsSet))
	count := 0
	for i, set := range block.RecordsSet {
		batch := set.RecordBatch
		if batch == nil {
			return d, fmt.Errorf("%w: message format older than version 2", ErrCorrupt)
		}
		if batch.PartialTrailingRecord {
			d.partial = i == 0
			break
		}
		if d.bytes >= left && d.bytes > 0 {
			d.cut = true
			break
		}
		if d.position > position && batch.PartitionLeaderEpoch != d.epoch {
			break // the rest is fetched again: leaders seldom change
		}
		next := batch.LastOffset() + 1
		d.position = max(d.position, next)
		d.epoch = batch.PartitionLeaderEpoch
		if filter.hides(batch) || next <= position {
			continue
		}
		for _, r := range batch.Records {
			d.bytes += recordSize(r)
		}
		count += len(batch.Records)
		taken = append(taken, batch)
	}
	if len(block.RecordsSet) == 0 && !block.Partial {
		d.position = max(d.position, emptyBatchesEnd(block))
	}
	d.records = convert(taken, count, position)
	return d, nil
}

// emptyBatchesEnd returns the offset after record batches without records,
// which compaction leaves behind. sarama drops such batches from its answer
// and keeps their end in a field of its own; if that field goes, a test says
// so.
func emptyBatchesEnd(block *sarama.FetchResponseBlock) int64 {
	end := reflect.ValueOf(block).Elem().FieldByName("recordsNextOffset")
	if end.Kind() != reflect.Pointer || end.IsNil() || end.Elem().Kind() != reflect.Int64 {
		return -1
	}
	return end.Elem().Int()
}

// abortedFilter tells the batches of aborted transactions. The zero value
// hides control batches only.
type abortedFilter struct {
	starts []*sarama.AbortedTransaction // by first offset, those not reached yet
	open   map[int64]struct{}           // producers in an aborted transaction
}

func newAbortedFilter(aborted []*sarama.AbortedTransaction) abortedFilter {
	if len(aborted) == 0 {
		return abortedFilter{}
	}
	starts := slices.SortedFunc(slices.Values(aborted), func(a, b *sarama.AbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	return abortedFilter{starts: starts, open: map[int64]struct{}{}}
}

// hides reports whether no record of the batch is to be seen. Batches must
// come in log order: a producer's transaction is aborted from its first
// offset up to its abort marker, behind which the next one may be committed.
func (f *abortedFilter) hides(batch *sarama.RecordBatch) bool {
	for len(f.starts) > 0 && f.starts[0].FirstOffset <= batch.LastOffset() {
		f.open[f.starts[0].ProducerID] = struct{}{}
		f.starts = f.starts[1:]
	}
	if batch.Control {
		if isAbortMarker(batch) {
			delete(f.open, batch.ProducerID)
		}
		return true
	}
	if !batch.IsTransactional || len(f.open) == 0 {
		return false
	}
	_, aborted := f.open[batch.ProducerID]
	return aborted
}

// isAbortMarker reads the type out of a control record's key: a version and
// a type, two bytes each; type 0 is abort.
func isAbortMarker(batch *sarama.RecordBatch) bool {
	if len(batch.Records) == 0 {
		return false
	}
	key := batch.Records[0].Key
	return len(key) >= 4 && binary.BigEndian.Uint16(key[2:]) == 0
}

func recordSize(r *sarama.Record) int {
	n := len(r.Key) + len(r.Value) + 36
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + 10
	}
	return n
}

// convert turns the records of batches into one slab, without those below
// position.
func convert(batches []*sarama.RecordBatch, count int, position int64) []Record {
	if count == 0 {
		return nil
	}
	records := make([]Record, count)
	n := 0
	var headers headerSlab
	for _, batch := range batches {
		first, last := timestampOf(batch.FirstTimestamp), int64(-1)
		if batch.LogAppendTime {
			last = timestampOf(batch.MaxTimestamp)
		}
		for _, from := range batch.Records {
			offset := batch.FirstOffset + from.OffsetDelta
			if offset < position {
				continue
			}
			r := &records[n]
			n++
			r.Key, r.Value, r.Offset = from.Key, from.Value, offset
			if batch.LogAppendTime {
				r.Timestamp = last
			} else {
				r.Timestamp = first + int64(from.TimestampDelta/time.Millisecond)
			}
			if len(from.Headers) > 0 {
				r.Headers = headers.convert(from.Headers)
			}
		}
	}
	return records[:n:n]
}

func timestampOf(t time.Time) int64 {
	if t.IsZero() {
		return -1
	}
	return t.UnixMilli()
}

// headerSlab gives out headers from larger pieces, and one string for keys
// that repeat from record to record, as they do.
type headerSlab struct {
	free []Header
	last []Header
}

func (s *headerSlab) convert(from []*sarama.RecordHeader) []Header {
	if len(s.free) < len(from) {
		s.free = make([]Header, max(64, len(from)))
	}
	headers := s.free[:len(from):len(from)]
	s.free = s.free[len(from):]
	for i, h := range from {
		if i < len(s.last) && s.last[i].Key == string(h.Key) { // compares without a copy
			headers[i].Key = s.last[i].Key
		} else {
			headers[i].Key = string(h.Key)
		}
		headers[i].Value = h.Value
	}
	s.last = headers
	return headers
}
