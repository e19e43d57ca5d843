package kafka

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// quietFetcher is a fetcher whose followings are moved by the test alone.
type quietFetcher struct {
	*saramaFetcher
	b *fetchBroker

	mu      sync.Mutex
	batches map[int32][]*Batch
}

func newQuietFetcher(t *testing.T, cfg FetcherConfig) *quietFetcher {
	t.Helper()
	f, err := newSaramaFetcher(testDriver(t, "b:1"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	b := &fetchBroker{addr: "b:1", wake: sync.NewCond(&f.mu), lanes: maxLanes, resting: maxLanes} // none is started
	f.brokers[b.addr] = b
	return &quietFetcher{saramaFetcher: f, b: b, batches: map[int32][]*Batch{}}
}

func (q *quietFetcher) follow(partitions ...int32) {
	q.saramaFetcher.mu.Lock()
	defer q.saramaFetcher.mu.Unlock()
	for _, p := range partitions {
		w := &following{f: q.saramaFetcher, epoch: -1, read: -1, expansion: 1, answered: true, Follow: Follow{
			TopicPartition: TopicPartition{"t", p},
			Deliver: func(b *Batch) {
				q.mu.Lock()
				defer q.mu.Unlock()
				q.batches[p] = append(q.batches[p], b)
			},
		}}
		q.followed[w.TopicPartition] = w
		q.settleLocked(w, "b:1")
	}
}

func (q *quietFetcher) pick() *request {
	q.saramaFetcher.mu.Lock()
	defer q.saramaFetcher.mu.Unlock()
	return q.pickLocked(q.b)
}

func picked(req *request) []int32 {
	var ps []int32
	if req != nil {
		for _, w := range req.parts {
			ps = append(ps, w.Partition)
		}
	}
	return ps
}

func equal(a []int32, b ...int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// answer delivers n records of each partition of a request and puts it back.
func (q *quietFetcher) answer(req *request, n int) {
	for i, w := range req.parts {
		block := answerOf(batchOf(w.position, n))
		block.HighWaterMarkOffset, block.LastStableOffset = w.position+int64(n), w.position+int64(n)
		q.took(nil, q.b, w, block, req.asks[i])
	}
	q.finish(q.b, req)
}

func (q *quietFetcher) release(p int32) {
	q.mu.Lock()
	batches := q.batches[p]
	q.batches[p] = nil
	q.mu.Unlock()
	for _, b := range batches {
		b.Release()
	}
}

func TestAPartitionWithoutBudgetIsLeftOutUntilItIsReleased(t *testing.T) {
	q := newQuietFetcher(t, FetcherConfig{PartitionBytes: 1000})
	q.follow(0, 1)
	req := q.pick()
	if !equal(picked(req), 0, 1) {
		t.Fatalf("asked for %v", picked(req))
	}
	q.answer(req, 100)
	q.release(1)
	if req := q.pick(); !equal(picked(req), 1) {
		t.Fatalf("asked for %v, want 1 only", picked(req))
	}
	if req := q.pick(); req != nil {
		t.Fatalf("asked for %v, want nothing", picked(req))
	}
	q.release(0)
	if req := q.pick(); !equal(picked(req), 0) {
		t.Fatalf("asked for %v after the release, want 0", picked(req))
	}
}

func TestTheTotalBoundsAllButAPartitionOfWhichNothingIsHeld(t *testing.T) {
	q := newQuietFetcher(t, FetcherConfig{PartitionBytes: 1 << 20, TotalBytes: 1000})
	q.follow(0, 1)
	q.answer(q.pick(), 100)
	if req := q.pick(); req != nil {
		t.Fatalf("asked for %v with the total used up", picked(req))
	}
	q.follow(2)
	req := q.pick()
	if !equal(picked(req), 2) || req.limit > 1 {
		t.Fatalf("asked for %v, %d bytes; want one batch of 2", picked(req), req.limit)
	}
	q.answer(req, 1)
	q.release(0)
	q.release(1)
	q.release(2)
	if q.total != 0 || q.reserved != 0 {
		t.Errorf("%d bytes held, %d reserved after everything was released", q.total, q.reserved)
	}
	if req := q.pick(); len(picked(req)) != 3 {
		t.Errorf("asked for %v, want all", picked(req))
	}
}

// The broker fills an answer in an order of its own and leaves the others
// empty: those go first next time, and alone if they are passed over again.
func TestAPartitionThatWasPassedOverGoesFirst(t *testing.T) {
	q := newQuietFetcher(t, FetcherConfig{})
	q.follow(0, 1, 2)
	req := q.pick()
	full := answerOf(batchOf(0, 10))
	full.HighWaterMarkOffset, full.LastStableOffset = 100, 100
	empty := func() *sarama.FetchResponseBlock {
		return &sarama.FetchResponseBlock{HighWaterMarkOffset: 100, LastStableOffset: 100}
	}
	q.took(nil, q.b, req.parts[0], full, 1)
	q.took(nil, q.b, req.parts[1], empty(), 1)
	q.took(nil, q.b, req.parts[2], empty(), 1)
	q.finish(q.b, req)
	req = q.pick()
	if !equal(picked(req), 1, 2) {
		t.Fatalf("asked for %v, want those passed over", picked(req))
	}
	q.took(nil, q.b, req.parts[0], empty(), 1)
	q.took(nil, q.b, req.parts[1], full, 1)
	q.finish(q.b, req)
	if req = q.pick(); !equal(picked(req), 1) {
		t.Fatalf("asked for %v, want 1 alone", picked(req))
	}
	if rest := q.pick(); !equal(picked(rest), 0, 2) {
		t.Errorf("another lane asks for %v, want the rest", picked(rest))
	}
}

func TestABatchLargerThanWhatIsAskedForIsAskedForAloneWithMore(t *testing.T) {
	q := newQuietFetcher(t, FetcherConfig{})
	q.follow(0, 1)
	partial := batchOf(0, 1)
	partial.Records, partial.PartialTrailingRecord = nil, true
	block := answerOf(partial)
	block.HighWaterMarkOffset, block.LastStableOffset = 1, 1
	last := 0
	for range 5 {
		req := q.pick()
		if last > 0 && !equal(picked(req), 0) {
			t.Fatalf("asked for %v, want 0 alone", picked(req))
		}
		if req.asks[0] <= last || last > 0 && req.limit < req.asks[0] {
			t.Fatalf("asked for %d of %d bytes after %d", req.asks[0], req.limit, last)
		}
		last = req.asks[0]
		q.took(nil, q.b, req.parts[0], block, last)
		for i, w := range req.parts[1:] {
			end := &sarama.FetchResponseBlock{}
			q.took(nil, q.b, w, end, req.asks[i+1])
		}
		q.finish(q.b, req)
	}
	req := q.pick()
	q.answer(req, 1)
	if req := q.pick(); len(picked(req)) != 2 || req.asks[0] > maxAsk {
		t.Errorf("asked for %v, %v bytes, after the large batch", picked(req), req.asks)
	}
}

func TestAnAnswerThatDoesNotDecodeIsNarrowedDownToItsPartition(t *testing.T) {
	q := newQuietFetcher(t, FetcherConfig{})
	q.follow(0, 1)
	broken := sarama.PacketDecodingError{Info: "CRC didn't match"}
	for range 10 {
		req := q.pick()
		if req == nil {
			break
		}
		if len(req.parts) == 1 && req.parts[0].Partition == 1 || len(req.parts) == 2 {
			q.lost(q.b, req, broken)
			continue
		}
		q.answer(req, 1)
		q.release(0)
	}
	failed := q.batches[1]
	if len(failed) != 1 {
		t.Fatalf("%d batches of the corrupt partition", len(failed))
	}
	var place *Error
	if err := failed[0].Err; !errors.Is(err, ErrCorrupt) || !errors.As(err, &place) || place.Partition != 1 || place.Offset != 0 {
		t.Errorf("error %v", failed[0].Err)
	}
	if w := q.followed[TopicPartition{"t", 0}]; w == nil || w.position == 0 {
		t.Error("the other partition did not go on")
	}
}

func TestTroubleOfTheNetworkIsNotTakenForCorruption(t *testing.T) {
	for _, err := range []error{io.EOF, net.ErrClosed, &net.OpError{Op: "read", Err: errors.New("reset")}, sarama.ErrNotConnected, kerror(sarama.ErrUnknown)} {
		if undecodable(err) {
			t.Errorf("%v counts as corrupt", err)
		}
	}
	if !undecodable(sarama.PacketDecodingError{Info: "CRC"}) || !undecodable(sarama.ErrInsufficientData) {
		t.Error("answers that do not decode do not count as corrupt")
	}
}

func TestUnfollowWaitsForADeliverThatRuns(t *testing.T) {
	q := newQuietFetcher(t, FetcherConfig{})
	q.follow(0)
	req := q.pick()
	entered, leave, unfollowed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	deliver := req.parts[0].Deliver
	req.parts[0].Deliver = func(b *Batch) { close(entered); <-leave; deliver(b) }
	go q.answer(req, 1) // ends after leave is closed; unfollowed is closed behind it
	<-entered
	go func() { // ends with Unfollow; waited for below
		q.Unfollow(TopicPartition{"t", 0}, TopicPartition{"t", 9})
		close(unfollowed)
	}()
	select {
	case <-unfollowed:
		t.Fatal("Unfollow returned while Deliver was running")
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	<-unfollowed
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.batches[0]); n != 1 {
		t.Errorf("%d batches delivered", n)
	}
}

func TestNothingOfTheOldTermsIsDeliveredAfterFollow(t *testing.T) {
	q := newQuietFetcher(t, FetcherConfig{})
	q.follow(0)
	req := q.pick()
	q.Follow(Follow{TopicPartition: TopicPartition{"t", 0}, Position: 7, Deliver: func(*Batch) { t.Error("delivered without a leader") }})
	q.answer(req, 1)
	if n := len(q.batches[0]); n != 0 {
		t.Errorf("%d batches under the old terms", n)
	}
	if q.b.homes != 0 || len(q.b.queue) != 0 {
		t.Errorf("%d homes, %d waiting; the old following is still there", q.b.homes, len(q.b.queue))
	}
}

func TestMarksAreDeliveredWhenTheyChangeAndOnlyThen(t *testing.T) {
	q := newQuietFetcher(t, FetcherConfig{})
	q.follow(0)
	w := q.followed[TopicPartition{"t", 0}]
	w.answered = false
	for _, m := range []marks{{0, 0, 0}, {0, 0, 0}, {5, 0, 0}, {5, 0, 0}, {5, 0, 0}} {
		req := q.pick()
		q.took(nil, q.b, w, &sarama.FetchResponseBlock{HighWaterMarkOffset: m.high, LastStableOffset: m.stable, LogStartOffset: m.start}, 1)
		q.finish(q.b, req)
	}
	if n := len(q.batches[0]); n != 2 || q.batches[0][1].HighWatermark != 5 {
		t.Errorf("%d batches for a first answer and one change", n)
	}
}

func TestBoundsThatCannotWorkAreRefused(t *testing.T) {
	d := testDriver(t, "b:1")
	for _, cfg := range []FetcherConfig{{PartitionBytes: -1}, {TotalBytes: -1}, {MaxWait: -1}, {Isolation: 9}} {
		if _, err := d.NewFetcher(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
