package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/IBM/sarama"
)

// took handles what b answered for w. The caller owns w.
func (f *saramaFetcher) took(conns *conns, b *fetchBroker, w *following, block *sarama.FetchResponseBlock, asked int) {
	if block == nil {
		f.stray(w)
		return
	}
	switch block.Err {
	case sarama.ErrNoError:
		f.read(w, block, asked)
	case sarama.ErrOffsetOutOfRange:
		f.judgeRange(conns, b, w)
	case sarama.ErrUnknownTopicOrPartition:
		f.notFound(w, kerror(block.Err))
	case sarama.ErrTopicAuthorizationFailed, sarama.ErrInvalidMessage:
		f.fail(w, &Error{TopicPartition: w.TopicPartition, Offset: w.position, Err: kerror(block.Err)})
	default: // a leader that moved, or trouble of the broker
		f.stray(w)
	}
}

// read delivers the records of an answer.
func (f *saramaFetcher) read(w *following, block *sarama.FetchResponseBlock, asked int) {
	w.tries, w.outOfRange, w.corrupt, w.missing, w.changed = 0, 0, 0, time.Time{}, time.Time{}
	committed := f.cfg.Isolation == ReadCommitted
	got, err := decodeBlock(block, w.position, committed, w.left)
	if err != nil {
		f.fail(w, &Error{TopicPartition: w.TopicPartition, Offset: got.position, Err: err})
		return
	}
	now := marks{high: block.HighWaterMarkOffset, stable: block.LastStableOffset, start: block.LogStartOffset}
	if now.stable < 0 { // told only to those who read committed records
		now.stable = now.high
	}
	limit := now.high
	if committed {
		limit = now.stable
	}
	moved := got.position > w.position
	if w.read >= 0 && got.epoch > w.read && !f.sameLog(w, now) {
		return
	}
	if !moved && w.position < limit && !f.passedOver(w, got, asked) {
		return
	}
	if moved {
		w.passed, w.grown = 0, 0
		w.suspect = max(w.suspect-max(got.bytes, 1), 0)
		w.learnExpansion(got, asked, got.position < limit)
	} else if w.position >= limit {
		w.passed = 0
	}
	if !moved && w.answered && now == w.marks {
		return
	}
	w.position, w.marks, w.answered = got.position, now, true
	if moved && got.epoch >= 0 {
		w.read = got.epoch
	}
	f.send(w, Batch{
		TopicPartition: w.TopicPartition, Records: got.records, Position: got.position, LeaderEpoch: got.epoch,
		HighWatermark: now.high, LastStable: now.stable, LogStart: now.start, Bytes: got.bytes,
	})
}

// epochPatience is how long a following may keep its lane for a question about
// an epoch.
const epochPatience = 2 * time.Second

// sameLog asks, where a new leader epoch begins in the log, whether the old
// one ended behind what was delivered. If that was lost the following fails; if
// nobody tells, the answer is dropped and asked for again later.
func (f *saramaFetcher) sameLog(w *following, now marks) bool {
	ctx, cancel := context.WithTimeout(f.ctx, epochPatience)
	defer cancel()
	_, end, err := f.d.admin.EpochEnd(ctx, w.TopicPartition, w.read)
	switch {
	case errors.Is(err, ErrUnsupported), errors.Is(err, ErrNotAuthorized):
		return true
	case err != nil:
		f.stray(w)
		return false
	case end >= w.position:
		return true
	}
	w.marks = now
	f.fail(w, &TruncatedError{End: end, OffsetOutOfRangeError: OffsetOutOfRangeError{
		TopicPartition: w.TopicPartition, Position: w.position, LogStart: now.start, HighWatermark: now.high,
	}})
	return false
}

// passedOver handles an answer that brought nothing of w although there is
// something to read: the answer was full, or w's next batch larger than what
// was asked for. It reports whether what the answer says of marks may be
// delivered all the same.
func (f *saramaFetcher) passedOver(w *following, got decoded, asked int) bool {
	w.passed++
	if w.passed < 3 && !got.partial {
		return true
	}
	switch {
	case w.passed < 2: // asked for alone next time, with a larger bound
		w.passed, w.grown = 2, max(2*asked, minAsk)
	case asked < largestBatch:
		w.grown = min(max(2*asked, minAsk), largestBatch)
	case got.partial:
		err := fmt.Errorf("%w: larger than %d bytes, or cut off", ErrCorrupt, largestBatch)
		f.fail(w, &Error{TopicPartition: w.TopicPartition, Offset: w.position, Err: err})
		return false
	default:
		f.stray(w)
	}
	return true
}

// learnExpansion corrects the estimate of how many bytes one byte asked for
// becomes.
func (w *following) learnExpansion(got decoded, asked int, full bool) {
	switch {
	case got.cut:
		w.expansion *= 1.5
	case full && asked > minAsk && got.bytes > asked/2:
		w.expansion += (float64(got.bytes)/float64(asked) - w.expansion) / 4
	}
	w.expansion = min(max(w.expansion, 1), 1000)
}

// judgeRange handles OFFSET_OUT_OF_RANGE. The first time the leader, and the
// topic behind the name, are looked up again; if it stands, the log's bounds
// decide.
func (f *saramaFetcher) judgeRange(conns *conns, b *fetchBroker, w *following) {
	if w.outOfRange++; w.outOfRange == 1 {
		f.stray(w)
		return
	}
	start, err := f.bound(conns, b, w, sarama.OffsetOldest)
	if err != nil {
		f.stray(w)
		return
	}
	high, err := f.bound(conns, b, w, sarama.OffsetNewest)
	if err != nil || (w.position >= start && w.position <= high) {
		f.stray(w) // a replica that is behind, or has caught up meanwhile
		return
	}
	w.marks.start, w.marks.high = start, high
	f.fail(w, &OffsetOutOfRangeError{TopicPartition: w.TopicPartition, Position: w.position, LogStart: start, HighWatermark: high})
}

func (f *saramaFetcher) bound(conns *conns, b *fetchBroker, w *following, which int64) (int64, error) {
	req := sarama.NewOffsetRequest(f.d.cfg.Version)
	req.AddBlock(w.Topic, w.Partition, which, 1)
	var answer *sarama.OffsetResponse
	err := conns.do(f.ctx, b.addr, func(broker *sarama.Broker) (err error) {
		answer, err = broker.GetAvailableOffsets(req)
		return err
	})
	if err != nil {
		return 0, err
	}
	block := answer.GetBlock(w.Topic, w.Partition)
	if block == nil {
		return 0, sarama.ErrIncompleteResponse
	}
	return block.Offset, kerror(block.Err)
}

// notFound handles being told that the topic or partition does not exist. It
// is believed when it has been told for longer than metadata may be stale.
func (f *saramaFetcher) notFound(w *following, err error) {
	now := f.d.clock.Now()
	if w.missing.IsZero() {
		w.missing = now
	}
	if now.Sub(w.missing) >= missingPatience {
		if !errors.Is(err, ErrUnknownTopic) {
			err = fmt.Errorf("%w: %w", ErrUnknownTopic, err)
		}
		f.fail(w, &Error{TopicPartition: w.TopicPartition, Offset: w.position, Err: err})
		return
	}
	f.stray(w)
}

// stray has the leader of w looked up again, after a pause that grows. The
// caller owns w and gives it to the control goroutine next.
func (f *saramaFetcher) stray(w *following) {
	f.d.invalidate(w.Topic)
	pause := min(backoffMin<<min(w.tries, 10), retryMax)
	w.tries++
	w.retry = f.d.clock.Now().Add(pause/2 + rand.N(pause/2+1))
	w.astray = true
}
