package kafka

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// batchOf is a record batch of n records from offset first on.
func batchOf(first int64, n int, change ...func(*sarama.RecordBatch)) *sarama.RecordBatch {
	b := &sarama.RecordBatch{
		Version: 2, FirstOffset: first, LastOffsetDelta: int32(n - 1), PartitionLeaderEpoch: 3, ProducerID: -1,
		FirstTimestamp: time.UnixMilli(1000), MaxTimestamp: time.UnixMilli(9000),
	}
	for i := range n {
		b.Records = append(b.Records, &sarama.Record{
			Key: []byte(fmt.Sprintf("k%d", first+int64(i))), Value: []byte("v"), OffsetDelta: int64(i), TimestampDelta: time.Duration(i) * time.Millisecond,
		})
	}
	for _, f := range change {
		f(b)
	}
	return b
}

func inTransaction(pid int64) func(*sarama.RecordBatch) {
	return func(b *sarama.RecordBatch) { b.ProducerID, b.IsTransactional = pid, true }
}

// marker is the control batch that ends a transaction.
func marker(at, pid int64, commit bool) *sarama.RecordBatch {
	b := batchOf(at, 1, inTransaction(pid))
	b.Control = true
	b.Records[0].Key = []byte{0, 0, 0, 0}
	if commit {
		b.Records[0].Key[3] = 1
	}
	return b
}

func answerOf(batches ...*sarama.RecordBatch) *sarama.FetchResponseBlock {
	block := &sarama.FetchResponseBlock{}
	for _, b := range batches {
		block.RecordsSet = append(block.RecordsSet, &sarama.Records{RecordBatch: b})
	}
	return block
}

func offsets(records []Record) []int64 {
	var all []int64
	for i := range records {
		all = append(all, records[i].Offset)
	}
	return all
}

func TestAbortedTransactionsAreHiddenUpToTheirMarker(t *testing.T) {
	block := answerOf(
		batchOf(0, 2, inTransaction(7)),  // aborted
		batchOf(2, 2),                    // outside of transactions
		batchOf(4, 1, inTransaction(8)),  // committed
		batchOf(5, 1, inTransaction(7)),  // aborted, same transaction
		marker(6, 7, false),              // ends it
		batchOf(7, 2, inTransaction(7)),  // the same producer's next, committed
		marker(9, 8, true),               //
		marker(10, 7, true),              //
		batchOf(11, 1, inTransaction(8)), // aborted: the second of producer 8
		marker(12, 8, false),
	)
	block.AbortedTransactions = []*sarama.AbortedTransaction{{ProducerID: 8, FirstOffset: 11}, {ProducerID: 7, FirstOffset: 0}} // in no order
	got, err := decodeBlock(block, 0, true, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{2, 3, 4, 7, 8}; !slices.Equal(offsets(got.records), want) {
		t.Errorf("offsets %v, want %v", offsets(got.records), want)
	}
	if got.position != 13 || got.epoch != 3 {
		t.Errorf("position %d, epoch %d, want 13 and 3", got.position, got.epoch)
	}
	all, err := decodeBlock(block, 0, false, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{0, 1, 2, 3, 4, 5, 7, 8, 11}; !slices.Equal(offsets(all.records), want) {
		t.Errorf("uncommitted offsets %v, want %v", offsets(all.records), want)
	}
}

func TestReadingFromWithinAnAbortedTransactionHidesItsRest(t *testing.T) {
	// The broker names the transaction although it began before the answer.
	block := answerOf(batchOf(20, 2, inTransaction(7)), marker(22, 7, false), batchOf(23, 1, inTransaction(7)))
	block.AbortedTransactions = []*sarama.AbortedTransaction{{ProducerID: 7, FirstOffset: 5}}
	got, err := decodeBlock(block, 20, true, 1<<20)
	if err != nil || !slices.Equal(offsets(got.records), []int64{23}) || got.position != 24 {
		t.Errorf("offsets %v, position %d, %v", offsets(got.records), got.position, err)
	}
}

// The epoch of a checkpoint is that of the record before its position, so a
// batch may not mix two.
func TestABatchEndsWhereTheLeaderEpochChanges(t *testing.T) {
	epoch := func(n int32) func(*sarama.RecordBatch) {
		return func(b *sarama.RecordBatch) { b.PartitionLeaderEpoch = n }
	}
	block := answerOf(batchOf(0, 2, epoch(3)), batchOf(2, 2, epoch(3)), batchOf(4, 2, epoch(5)), batchOf(6, 1, epoch(5)))
	for _, c := range []struct {
		from, position int64
		epoch          int32
	}{{0, 4, 3}, {3, 4, 3}, {4, 7, 5}, {7, 7, 5}} { // the last one has nothing new
		got, err := decodeBlock(block, c.from, true, 1<<20)
		if err != nil || got.position != c.position || got.epoch != c.epoch || got.cut {
			t.Errorf("from %d: position %d, epoch %d, cut %t, %v; want %d and %d", c.from, got.position, got.epoch, got.cut, err, c.position, c.epoch)
		}
		if want := int(c.position - c.from); len(got.records) != want {
			t.Errorf("from %d: %d records, want %d", c.from, len(got.records), want)
		}
	}
}

func TestPositionMovesOverWhatIsNotShown(t *testing.T) {
	compacted := batchOf(10, 1)
	compacted.LastOffsetDelta = 9 // nine records behind it are gone
	got, err := decodeBlock(answerOf(compacted, marker(20, 1, true)), 10, true, 1<<20)
	if err != nil || len(got.records) != 1 || got.position != 21 {
		t.Errorf("%d records, position %d, %v; want 1 and 21", len(got.records), got.position, err)
	}
}

func TestRecordsBelowThePositionAreDropped(t *testing.T) {
	got, err := decodeBlock(answerOf(batchOf(0, 5), batchOf(5, 5)), 7, true, 1<<20)
	if err != nil || !slices.Equal(offsets(got.records), []int64{7, 8, 9}) {
		t.Errorf("offsets %v, %v", offsets(got.records), err)
	}
}

func TestTimestampsAreTheRecordsOwnUnlessTheLogAppends(t *testing.T) {
	appended := batchOf(2, 2)
	appended.LogAppendTime = true
	none := batchOf(4, 1, func(b *sarama.RecordBatch) { b.FirstTimestamp = time.Time{} })
	got, err := decodeBlock(answerOf(batchOf(0, 2), appended, none), 0, true, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{1000, 1001, 9000, 9000, -1} {
		if ts := got.records[i].Timestamp; ts != want {
			t.Errorf("record %d: timestamp %d, want %d", i, ts, want)
		}
	}
}

func TestNullsAndHeadersComeThrough(t *testing.T) {
	b := batchOf(0, 2)
	b.Records[0].Key, b.Records[0].Value = nil, []byte{}
	for i, r := range b.Records {
		r.Headers = []*sarama.RecordHeader{{Key: []byte("same"), Value: nil}, {Key: []byte(fmt.Sprint("own", i)), Value: []byte("x")}}
	}
	got, err := decodeBlock(answerOf(b), 0, true, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	r := got.records[0]
	if r.Key != nil || r.Value == nil || len(r.Value) != 0 {
		t.Errorf("key %v, value %v; want null and empty", r.Key, r.Value)
	}
	for i, r := range got.records {
		h := r.Headers
		if len(h) != 2 || h[0].Key != "same" || h[0].Value != nil || h[1].Key != fmt.Sprint("own", i) || string(h[1].Value) != "x" {
			t.Errorf("headers of record %d: %v", i, h)
		}
	}
	size := got.records[0].Size() + got.records[1].Size()
	if got.bytes != size {
		t.Errorf("%d bytes, want %d", got.bytes, size)
	}
}

func TestAnAnswerIsCutWhereTheBudgetIsUsedUp(t *testing.T) {
	one, err := decodeBlock(answerOf(batchOf(0, 10)), 0, true, 1)
	if err != nil || one.cut || len(one.records) != 10 {
		t.Fatalf("a batch larger than the budget: %d records, cut %v, %v", len(one.records), one.cut, err)
	}
	got, err := decodeBlock(answerOf(batchOf(0, 10), batchOf(10, 10), batchOf(20, 10)), 0, true, one.bytes+1)
	if err != nil || !got.cut || len(got.records) != 20 || got.position != 20 {
		t.Errorf("%d records, position %d, cut %v, %v; want two batches", len(got.records), got.position, got.cut, err)
	}
}

func TestAPartialBatchIsNotRead(t *testing.T) {
	partial := batchOf(10, 5)
	partial.Records, partial.PartialTrailingRecord = nil, true
	got, err := decodeBlock(answerOf(batchOf(0, 10), partial), 0, true, 1<<20)
	if err != nil || got.partial || got.position != 10 {
		t.Errorf("partial %v, position %d, %v; want what stands before it", got.partial, got.position, err)
	}
	got, err = decodeBlock(answerOf(partial), 10, true, 1<<20)
	if err != nil || !got.partial || got.position != 10 {
		t.Errorf("partial %v, position %d, %v; want nothing read", got.partial, got.position, err)
	}
}

func TestOldMessageFormatsAreRefused(t *testing.T) {
	block := &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{{MsgSet: &sarama.MessageSet{}}}}
	if _, err := decodeBlock(block, 0, true, 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v", err)
	}
}

// Compaction leaves batches without records, which sarama drops from what it
// decodes: a reader that took this for "nothing there" would stand still.
func TestPositionMovesOverBatchesWithoutRecords(t *testing.T) {
	empty := batchOf(10, 0)
	empty.LastOffsetDelta = 4
	sent := &sarama.FetchResponse{Version: 11, Blocks: map[string]map[int32]*sarama.FetchResponseBlock{"t": {0: answerOf(empty)}}}
	broker := sarama.NewMockBroker(t, 1)
	defer broker.Close()
	broker.SetHandlerByMap(map[string]sarama.MockResponse{"FetchRequest": sarama.NewMockWrapper(sent)})
	cfg := sarama.NewConfig()
	cfg.ApiVersionsRequest = false
	d, err := newSaramaDriver([]string{broker.Addr()}, cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	c := d.newConns("test")
	defer c.close()
	req := &sarama.FetchRequest{Version: 11, MaxBytes: 1}
	req.AddBlock("t", 0, 10, 1, -1)
	var answer *sarama.FetchResponse
	if err := c.do(t.Context(), broker.Addr(), func(b *sarama.Broker) (err error) {
		answer, err = b.Fetch(req)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	got, err := decodeBlock(answer.GetBlock("t", 0), 10, true, 1<<20)
	if err != nil || got.position != 15 || len(got.records) != 0 {
		t.Errorf("position %d, %d records, %v; want 15 and none", got.position, len(got.records), err)
	}
}

func TestDecodingAllocatesPerAnswerAndNotPerRecord(t *testing.T) {
	block := answerOf(batchOf(0, 5000), batchOf(5000, 5000))
	n := testing.AllocsPerRun(10, func() {
		if _, err := decodeBlock(block, 0, true, 1<<30); err != nil {
			t.Fatal(err)
		}
	})
	if n > 5 {
		t.Errorf("%v allocations for 10,000 records", n)
	}
}
