package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// fetchBroker is one broker as its lanes see it. All of it is guarded by the
// fetcher's mu.
type fetchBroker struct {
	addr    string
	queue   []*following // waiting; those that were asked for last are behind
	homes   int          // followings that wait here or are in flight from here
	lanes   int
	resting int // lanes that sleep on wake
	wake    *sync.Cond
}

// request is what one lane asks for at once.
type request struct {
	parts []*following
	asks  []int
	limit int // bytes of the whole answer

	reserved int // of the total budget, while in flight
	wait     time.Duration
}

// settleLocked puts w into the queue of the broker at addr.
func (f *saramaFetcher) settleLocked(w *following, addr string) {
	if w.gone {
		return
	}
	b := f.brokers[addr]
	if b == nil {
		b = &fetchBroker{addr: addr, wake: sync.NewCond(&f.mu)}
		f.brokers[addr] = b
	}
	w.broker, w.asked = b, f.d.clock.Now()
	b.homes++
	b.queue = append(b.queue, w)
	f.kickLocked(b)
}

// dropLocked takes w out of the queue, if it is there.
func (b *fetchBroker) dropLocked(w *following) {
	if i := slices.Index(b.queue, w); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
		b.leaveLocked(w)
	}
}

// leaveLocked notes that w neither waits here nor is in flight from here.
func (b *fetchBroker) leaveLocked(w *following) {
	b.homes--
	if w.broker == b {
		w.broker = nil
	}
	if b.homes == 0 {
		b.wake.Broadcast() // the lanes end
	}
}

// kickLocked sees to it that somebody looks at b's queue if there is
// something to ask for.
func (f *saramaFetcher) kickLocked(b *fetchBroker) {
	if f.closed || !slices.ContainsFunc(b.queue, f.hasBudgetLocked) {
		return
	}
	switch {
	case b.resting > 0:
		b.wake.Signal()
	case b.lanes < maxLanes:
		first := b.lanes == 0
		b.lanes++
		f.wg.Go(func() { f.lane(b, first) }) // ends with Close, or when nothing lives at b any more; Close waits for it
	}
}

// hasBudgetLocked reports whether more of w may be asked for. A remainder
// that is not worth a request does not count. A partition of which nothing is
// held may always be asked for, lest a consumer that waits for it before it
// releases what it has of others waits for ever.
func (f *saramaFetcher) hasBudgetLocked(w *following) bool {
	if w.used == 0 {
		return true
	}
	left := f.cfg.PartitionBytes - w.used
	return left > 0 && left >= f.cfg.PartitionBytes/8 && f.total+f.reserved < f.cfg.TotalBytes
}

// lane sends one request after the other over a connection of its own.
func (f *saramaFetcher) lane(b *fetchBroker, first bool) {
	conns := f.d.newConns("fetch").patient(f.cfg.MaxWait)
	defer conns.close()
	for {
		req := f.next(b, first)
		if req == nil {
			return
		}
		answer, err := f.ask(conns, b, req)
		if err != nil {
			f.lost(b, req, err)
			continue
		}
		f.answered(b)
		for i, w := range req.parts {
			f.took(conns, b, w, answer.GetBlock(w.Topic, w.Partition), req.asks[i])
		}
		f.finish(b, req)
	}
}

// next waits until there is something to ask b for. It returns nil when the
// lane is to end.
func (f *saramaFetcher) next(b *fetchBroker, first bool) *request {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.closed && b.homes > 0 {
		f.recheckLocked(b)
		if req := f.pickLocked(b); req != nil {
			if !first {
				req.wait = min(req.wait, laterLaneWait)
			}
			f.kickLocked(b) // another lane, if something is left
			return req
		}
		b.resting++
		b.wake.Wait()
		b.resting--
	}
	b.lanes--
	if b.lanes == 0 && f.brokers[b.addr] == b {
		delete(f.brokers, b.addr)
	}
	return nil
}

// pickLocked takes out of the queue what the next request asks for: what has
// budget, but if some of it was passed over by the last answers (the broker
// fills an answer in an order of its own) then only that, and one that was
// passed over twice, or whose batches do not decode, alone.
func (f *saramaFetcher) pickLocked(b *fetchBroker) *request {
	rank := func(w *following) int {
		if w.suspect > 0 || w.passed > 1 {
			return 2
		}
		return w.passed
	}
	top, found := 0, false
	for _, w := range b.queue {
		if f.hasBudgetLocked(w) {
			top, found = max(top, rank(w)), true
		}
	}
	if !found {
		return nil
	}
	req := &request{wait: f.cfg.MaxWait}
	b.queue = slices.DeleteFunc(b.queue, func(w *following) bool {
		if !f.hasBudgetLocked(w) || rank(w) < top || (top == 2 && len(req.parts) > 0) {
			return false
		}
		req.parts = append(req.parts, w)
		return true
	})
	now, asked := f.d.clock.Now(), 0
	for _, w := range req.parts {
		w.left, w.asked = f.cfg.PartitionBytes-w.used, now
		ask := w.bytesToAsk()
		req.asks = append(req.asks, ask)
		asked += ask
		if !w.answered {
			req.wait = 0 // the first answer is due even if there is nothing to read
		}
	}
	req.reserved = asked
	if room := max(f.cfg.TotalBytes-f.total-f.reserved, 0); top < 2 {
		req.reserved = min(asked, maxResponse, max(room/2, 1))
	}
	if req.limit = max(asked, maxResponse); req.reserved < asked {
		req.limit = req.reserved // otherwise the bounds of the partitions are enough
	}
	f.reserved += req.reserved
	return req
}

// recheckLocked sends those home that could not be asked for so long that
// their topic may have been deleted and created again unseen.
func (f *saramaFetcher) recheckLocked(b *fetchBroker) {
	old := f.d.clock.Now().Add(-absentTooLong)
	b.queue = slices.DeleteFunc(b.queue, func(w *following) bool {
		if w.TopicID.IsZero() || w.asked.After(old) || !f.hasBudgetLocked(w) {
			return false
		}
		f.d.invalidate(w.Topic)
		b.leaveLocked(w)
		f.sendHomeLocked(w)
		return true
	})
}

func (w *following) bytesToAsk() int {
	switch {
	case w.grown > 0:
		return w.grown
	case w.suspect > 0:
		return 1 // the broker answers with one whole batch at least
	}
	return min(max(int(float64(w.left)/w.expansion), min(minAsk, w.left)), maxAsk)
}

// ask sends a request and waits for the answer.
func (f *saramaFetcher) ask(conns *conns, b *fetchBroker, req *request) (*sarama.FetchResponse, error) {
	fetch := &sarama.FetchRequest{
		Version: f.version, MinBytes: 1, MaxBytes: int32(req.limit), MaxWaitTime: int32(req.wait / time.Millisecond),
		Isolation: f.isolation(), SessionEpoch: -1, // no fetch session
	}
	for i, w := range req.parts {
		fetch.AddBlock(w.Topic, w.Partition, w.position, int32(req.asks[i]), w.epoch)
	}
	var answer *sarama.FetchResponse
	err := conns.do(f.ctx, b.addr, func(broker *sarama.Broker) (err error) {
		answer, err = broker.Fetch(fetch)
		return err
	})
	if err == nil && answer.ErrorCode != 0 {
		err = kerror(sarama.KError(answer.ErrorCode))
	}
	return answer, err
}

// lost handles a request without a usable answer. If an answer came that did
// not decode, its partitions are asked for one by one, batch by batch, until
// it is known which one is corrupt. Otherwise the leaders are looked up anew.
func (f *saramaFetcher) lost(b *fetchBroker, req *request, err error) {
	if f.ctx.Err() != nil {
		f.finish(b, req)
		return
	}
	if undecodable(err) {
		for _, w := range req.parts {
			if w.corrupt++; w.suspect > 0 && w.corrupt > 2 {
				f.fail(w, &Error{TopicPartition: w.TopicPartition, Offset: w.position, Err: fmt.Errorf("%w: %w", ErrCorrupt, err)})
			}
			w.suspect = suspectBytes
		}
		f.finish(b, req)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reserved -= req.reserved
	pause := f.troubleLocked(b.addr).failed(err)
	for _, w := range req.parts {
		f.d.invalidate(w.Topic)
		b.leaveLocked(w)
		if w.gone {
			continue
		}
		w.retry = f.d.clock.Now().Add(pause)
		f.sendHomeLocked(w)
	}
}

// undecodable reports whether err comes from an answer rather than from the
// way to it.
func undecodable(err error) bool {
	var network net.Error
	var code sarama.KError
	var errno syscall.Errno
	return !(errors.As(err, &network) || errors.As(err, &code) || errors.As(err, &errno) ||
		errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, sarama.ErrNotConnected) ||
		errors.Is(err, ErrAuthentication) || errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled))
}

func (f *saramaFetcher) answered(b *fetchBroker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.trouble[b.addr]; t != nil {
		t.reset()
		delete(f.trouble, b.addr)
	}
}

func (f *saramaFetcher) troubleLocked(addr string) *backoff {
	t := f.trouble[addr]
	if t == nil {
		t = newBackoff("fetching from "+addr, f.d.clock, f.d.log.With(zap.String("broker", addr)))
		f.trouble[addr] = t
	}
	return t
}

// finish puts the partitions of a request back into the queue.
func (f *saramaFetcher) finish(b *fetchBroker, req *request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reserved -= req.reserved
	for _, w := range req.parts {
		switch {
		case w.gone:
			b.leaveLocked(w)
		case w.astray:
			w.astray = false
			b.leaveLocked(w)
			f.sendHomeLocked(w)
		default:
			b.queue = append(b.queue, w)
		}
	}
	for _, other := range f.brokers { // what was reserved is free for all
		if other != b {
			f.kickLocked(other)
		}
	}
}
