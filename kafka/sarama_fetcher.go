package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// saramaFetcher is the Fetcher over sarama's Fetch requests.
//
// A followed partition is a following. At any time it is in one of these
// places, and whoever holds the place owns the following's reading state:
//
//	homeless   its leader is to be found: the control goroutine (sarama_fetcher_leaders.go)
//	waiting    in the queue of its leader's broker, with budget or without
//	in flight  in the request of one lane, until its answer is delivered (sarama_fetcher_lane.go)
//	gone       unfollowed, replaced or failed: nothing of it is delivered any more
//
// A broker has one lane, a goroutine with a connection of its own, and gets
// another one (up to maxLanes) when a partition could be asked for while all
// lanes wait for answers. So a long poll for quiet partitions delays neither
// a partition that was just followed nor one that just got budget again.
//
// Invariants:
//   - A following is in one place only; in particular in one request at most.
//     So its batches are delivered in order.
//   - Deliver runs under following.delivering, after a look at gone. Who sets
//     gone takes delivering afterwards, so that no Deliver runs when it
//     returns. mu is never held while delivering is taken or Deliver runs.
//   - used and total count what was delivered and not released. A lane that
//     finds nothing with budget sleeps on its broker's condition; Release,
//     Follow and a new leader wake it.
type saramaFetcher struct {
	// fixed after newSaramaFetcher
	d       *saramaDriver
	cfg     FetcherConfig
	version int16           // of fetch requests
	ctx     context.Context // ends with Close
	cancel  context.CancelCauseFunc
	lookup  chan struct{} // 1: somebody became homeless, or Close was called
	done    chan struct{} // closed when Close has ended
	wg      sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	followed map[TopicPartition]*following
	homeless map[*following]struct{}
	brokers  map[string]*fetchBroker // by address; removed with its last lane
	trouble  map[string]*backoff     // by address
	total    int                     // bytes delivered and not yet released
	reserved int                     // bytes that requests in flight may bring
}

// following is one partition on one set of terms.
type following struct {
	Follow
	f *saramaFetcher

	delivering sync.Mutex // held while Deliver runs

	// guarded by f.mu
	gone   bool
	used   int          // bytes delivered and not yet released
	broker *fetchBroker // where it waits or is in flight from; nil: homeless

	// owned by the holder of the following's place
	position   int64
	epoch      int32     // of the leader, for the broker to check
	read       int32     // leader epoch of what was delivered last, -1: nothing
	answered   bool      // a first batch was delivered
	marks      marks     // of the last batch delivered
	left       int       // budget when it was asked for
	expansion  float64   // bytes delivered for one byte asked for, estimated
	passed     int       // answers in a row without records though there were some
	grown      int       // > 0: bytes to ask for, for one large batch
	suspect    int       // > 0: asked for alone, batch by batch, for so many more bytes
	corrupt    int       // answers in a row that could not be decoded
	outOfRange int       // answers in a row of offset out of range
	asked      time.Time // when it was last in a request, or came to its broker
	astray     bool      // its leader must be looked up again
	tries      int       // failures in a row
	retry      time.Time // when the leader may be looked up again
	missing    time.Time // since when the topic or partition is said not to exist
	changed    time.Time // since when another topic is said to stand behind the name
}

type marks struct{ high, stable, start int64 }

// Bounds of single requests, in bytes.
const (
	maxAsk       = 1 << 20 // of one partition
	minAsk       = 4 << 10
	maxResponse  = 8 << 20  // of one answer
	largestBatch = 64 << 20 // what is larger counts as corrupt
	suspectBytes = 1 << 20
)

const (
	maxLanes        = 3
	laterLaneWait   = 100 * time.Millisecond // the longest poll of lanes after the first
	absentTooLong   = 5 * time.Second        // out of requests so long, a topic's id is checked again
	missingPatience = 5 * time.Second        // the brokers' metadata may be stale so long
	changedPatience = time.Second
	retryMax        = time.Second // between lookups of one partition's leader
)

func newSaramaFetcher(d *saramaDriver, cfg FetcherConfig) (*saramaFetcher, error) {
	if cfg.PartitionBytes < 0 || cfg.TotalBytes < 0 || cfg.MaxWait < 0 {
		return nil, errors.New("fetcher: negative bound")
	}
	if cfg.Isolation != ReadCommitted && cfg.Isolation != ReadUncommitted {
		return nil, fmt.Errorf("fetcher: unknown isolation %d", cfg.Isolation)
	}
	if cfg.PartitionBytes == 0 {
		cfg.PartitionBytes = 2 << 20
	}
	if cfg.TotalBytes == 0 {
		cfg.TotalBytes = 64 << 20
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = 500 * time.Millisecond
	}
	f := &saramaFetcher{
		d: d, cfg: cfg, lookup: make(chan struct{}, 1), done: make(chan struct{}),
		followed: map[TopicPartition]*following{}, homeless: map[*following]struct{}{},
		brokers: map[string]*fetchBroker{}, trouble: map[string]*backoff{},
	}
	// Version 12 is the first whose decoding takes a null record set, which
	// some brokers send along with an error.
	if f.version = 11; d.cfg.Version.IsAtLeast(sarama.V2_7_0_0) {
		f.version = 12
	}
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	f.wg.Go(f.findLeaders) // ends with ctx; Close waits for it
	return f, nil
}

// Follow implements Fetcher.
func (f *saramaFetcher) Follow(terms Follow) {
	f.remove(terms.TopicPartition)
	w := &following{Follow: terms, f: f, position: terms.Position, epoch: -1, read: -1, expansion: 1.25}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.followed[terms.TopicPartition] = w
	f.sendHomeLocked(w)
}

// Unfollow implements Fetcher.
func (f *saramaFetcher) Unfollow(partitions ...TopicPartition) {
	for _, tp := range partitions {
		f.remove(tp)
	}
}

// remove ends a following and waits for its Deliver.
func (f *saramaFetcher) remove(tp TopicPartition) {
	f.mu.Lock()
	w := f.followed[tp]
	if w != nil {
		f.endLocked(w)
	}
	f.mu.Unlock()
	if w != nil {
		w.awaitDeliver()
	}
}

// awaitDeliver returns when no Deliver of w is running.
func (w *following) awaitDeliver() {
	w.delivering.Lock()
	w.delivering.Unlock() //nolint:staticcheck // to have had it is all that is wanted
}

// Close implements Fetcher.
func (f *saramaFetcher) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		<-f.done
		return nil
	}
	f.closed = true
	for _, w := range f.followed {
		f.endLocked(w)
	}
	for _, b := range f.brokers {
		b.wake.Broadcast()
	}
	f.mu.Unlock()

	f.cancel(ErrClosed)
	f.wg.Wait()
	f.d.release(f)
	close(f.done)
	return nil
}

// endLocked makes w gone. Where a queue still holds it, it is dropped there
// when it is met.
func (f *saramaFetcher) endLocked(w *following) {
	w.gone = true
	delete(f.homeless, w)
	if f.followed[w.TopicPartition] == w {
		delete(f.followed, w.TopicPartition)
	}
	if w.broker != nil {
		w.broker.dropLocked(w)
	}
}

// sendHomeLocked gives w to the control goroutine, whose leader is unknown
// or has to be looked at again.
func (f *saramaFetcher) sendHomeLocked(w *following) {
	if w.gone {
		return
	}
	f.homeless[w] = struct{}{}
	select {
	case f.lookup <- struct{}{}:
	default:
	}
}

// send delivers a batch of w, unless it is gone. The caller owns w.
func (f *saramaFetcher) send(w *following, batch Batch) {
	w.delivering.Lock()
	defer w.delivering.Unlock()
	f.mu.Lock()
	if w.gone {
		f.mu.Unlock()
		return
	}
	w.used += batch.Bytes
	f.total += batch.Bytes
	if batch.Err != nil {
		f.endLocked(w)
	}
	f.mu.Unlock()

	n := batch.Bytes
	w.Deliver(NewBatch(batch, func() { f.released(w, n) }))
}

// fail delivers the last batch of w.
func (f *saramaFetcher) fail(w *following, err error) {
	f.send(w, Batch{
		TopicPartition: w.TopicPartition, Position: w.position, LeaderEpoch: -1,
		HighWatermark: w.marks.high, LastStable: w.marks.stable, LogStart: w.marks.start, Err: err,
	})
}

// released gives n bytes back.
func (f *saramaFetcher) released(w *following, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	starved := f.total+f.reserved >= f.cfg.TotalBytes
	had := f.hasBudgetLocked(w)
	w.used -= n
	f.total -= n
	switch {
	case starved:
		for _, b := range f.brokers {
			f.kickLocked(b)
		}
	case !had && w.broker != nil:
		f.kickLocked(w.broker)
	}
}

// isolation returns the request's form of the configured isolation.
func (f *saramaFetcher) isolation() sarama.IsolationLevel {
	if f.cfg.Isolation == ReadCommitted {
		return sarama.ReadCommitted
	}
	return sarama.ReadUncommitted
}
