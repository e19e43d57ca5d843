package view

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/internal/replica"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/window"
)

// Windows is a local copy of a table of windows. All that the package
// documentation says of a View holds for it, too. It has the rows that the
// topic has: a window that has expired is there until its owner has deleted it.
type Windows[T any] struct {
	view *View[T] // of the rows as the topic has them
}

// NewWindows returns a view of a table of windows. It validates and does not
// dial: Run does.
func NewWindows[T any](c *kafka.Client, t reka.WindowTable[T], opts ...Option) (*Windows[T], error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	switch {
	case c == nil:
		return nil, errors.New("view: no client")
	case t.Name() == "" || t.Codec() == nil:
		return nil, errors.New("view: the table was not made by reka.NewWindowTable with a name and a codec")
	case cfg.onChange != nil:
		return nil, fmt.Errorf("view: WithObserver is not for the windows of %s", t.Name())
	}
	if err := t.Windows().Validate(); err != nil {
		return nil, fmt.Errorf("view: table %s: %w", t.Name(), err)
	}
	v := &View[T]{topic: t.Name(), codec: t.Codec(), windows: t.Windows()}
	if err := v.connect(c, cfg); err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	return &Windows[T]{v}, nil
}

// Run keeps the copy until ctx ends, as View.Run does.
func (v *Windows[T]) Run(ctx context.Context) error { return v.view.Run(ctx) }

// Ready reports whether reads are answered.
func (v *Windows[T]) Ready() bool { return v.view.Ready() }

// WaitReady waits until reads are answered, as View.WaitReady does.
func (v *Windows[T]) WaitReady(ctx context.Context) error { return v.view.WaitReady(ctx) }

// State returns where the view stands.
func (v *Windows[T]) State() State { return v.view.State() }

// Lag returns how many offsets the copy is behind the log, over all
// partitions, as of the last answer of the brokers.
func (v *Windows[T]) Lag() int64 { return v.view.Lag() }

// Stats returns a snapshot.
func (v *Windows[T]) Stats() Stats { return v.view.Stats() }

// Fetch yields the rows of a key whose windows start at from, at to, or
// between them, by ascending start. Of sessions it yields those that overlap
// that time. A zero from, or to, is no bound. A row that cannot be decoded is
// yielded with its key, its window, its time and the error, and the loop may
// go on; any other error is the last thing that is yielded.
func (v *Windows[T]) Fetch(key string, from, to time.Time, o ...ReadOption) iter.Seq2[reka.WindowRow[T], error] {
	ws, p := v.view.windows, newPeriod(from, to)
	first, last := window.Window{Start: p.from}, window.Window{Start: p.to}
	if ws.Kind() == window.KindSession {
		// Their keys are in order of the ends. One that ends late may have
		// begun early enough.
		first, last = window.Window{End: p.from}, window.Window{Start: math.MaxInt64, End: math.MaxInt64}
	}
	r := storage.Range{
		From: ws.AppendTopicKey(nil, []byte(key), first),
		To:   append(ws.AppendTopicKey(nil, []byte(key), last), 0), // the next one in byte order
	}
	if p.empty() {
		r.To = r.From
	}
	// What is longer belongs to another key that goes on as a time of this one
	// does.
	size := len(key) + ws.TopicKeySize()
	return v.scan(r, p, func(topicKey []byte) bool { return len(topicKey) == size }, fold(o))
}

// All yields the rows of all keys, as Fetch does. Those of a key come by
// ascending start, but not necessarily side by side. It reads the whole copy.
func (v *Windows[T]) All(from, to time.Time, o ...ReadOption) iter.Seq2[reka.WindowRow[T], error] {
	return v.scan(storage.Range{}, newPeriod(from, to), func([]byte) bool { return true }, fold(o))
}

func (v *Windows[T]) scan(r storage.Range, p period, mine func(topicKey []byte) bool, o ReadOption) iter.Seq2[reka.WindowRow[T], error] {
	r.Reverse = o.reverse
	return func(yield func(reka.WindowRow[T], error) bool) {
		for raw, err := range v.view.mirror.Scan(r, o.stale) {
			if err != nil {
				yield(reka.WindowRow[T]{}, err)
				return
			}
			if !mine(raw.Key) {
				continue
			}
			row, ok, err := v.decodeRow(raw, p)
			if (ok || err != nil) && !yield(row, err) {
				return
			}
		}
	}
}

// decodeRow reports whether the row is one of the period. Without a window,
// nobody knows: then it is an error.
func (v *Windows[T]) decodeRow(raw replica.Row, p period) (reka.WindowRow[T], bool, error) {
	key, w, err := v.view.windows.SplitTopicKey(raw.Key)
	switch {
	case err != nil:
		return reka.WindowRow[T]{Key: string(raw.Key), Time: rowTime(raw.Time)}, false, v.view.undecodable(raw.Key, err)
	case !p.has(v.view.windows, w):
		return reka.WindowRow[T]{}, false, nil
	}
	row := reka.WindowRow[T]{Key: string(key), Window: w, Time: rowTime(raw.Time)}
	val, err := v.view.codec.Decode(raw.Value)
	if err != nil {
		return row, true, v.view.undecodable(raw.Key, err)
	}
	row.Value = val
	return row, true, nil
}

// period is the time that is asked for, in milliseconds, both ends inside.
type period struct{ from, to int64 }

// newPeriod has the milliseconds that lie between two times: from is rounded
// up, to is rounded down.
func newPeriod(from, to time.Time) period {
	p := period{0, math.MaxInt64}
	if !from.IsZero() {
		p.from = max(millis(from.Add(time.Millisecond-1)), 0)
	}
	if !to.IsZero() {
		p.to = millis(to)
	}
	return p
}

// millis is t rounded down, and the end of time for what UnixMilli cannot
// say.
func millis(t time.Time) int64 {
	switch s := t.Unix(); {
	case s > math.MaxInt64/1000-1:
		return math.MaxInt64
	case s < 0:
		return -1
	}
	return t.UnixMilli()
}

func (p period) empty() bool { return p.from > p.to }

func (p period) has(ws window.Windows, w window.Window) bool {
	if p.empty() {
		return false
	}
	if ws.Kind() == window.KindSession {
		return w.End >= p.from && w.Start <= p.to
	}
	return w.Start >= p.from && w.Start <= p.to
}
