package processor

import (
	"context"
	"iter"
	"time"

	"github.com/rekastream/reka/internal/task"
)

// Context is what a callback knows of the record at hand, and what handles
// act through. It is valid on the callback's goroutine until the callback
// returns; using it afterwards fails the processor with ErrInactive, or acts
// on the record that is being processed by then.
//
// It is a context.Context too, which lives as long as the task does: what a
// library keeps of it stays valid, and it ends when the partition is taken
// away or the processor has stopped waiting.
type Context struct {
	context.Context

	rec   *task.Record
	part  *part
	local *any

	ringing          []byte // row of the timer whose callback runs
	keyBuf, valueBuf []byte
	seen             uint32 // records of the task
}

// newContext returns the context of a task's records.
func newContext(p *part, r *task.Record) *Context {
	return &Context{Context: r.Context(), rec: r, part: p, local: new(any)}
}

// Record returns what c stands at. It is for Reka's own packages.
func (c *Context) Record() *task.Record { return c.rec }

// Local returns a place for what belongs to the task, the same for all its
// records and all copies of the context. It is for Reka's own packages.
func (c *Context) Local() *any { return c.local }

// With returns a copy of the context for middleware: handles act through it
// as through the original, and as a context.Context it delegates to parent,
// which should be derived from the original.
func (c *Context) With(parent context.Context) *Context {
	d := *c
	d.Context, d.keyBuf, d.valueBuf = parent, nil, nil
	return &d
}

// Group returns the group's name.
func (c *Context) Group() string { return c.part.spec.Group }

// Topic returns the record's topic; empty in a visitor.
func (c *Context) Topic() string { return c.rec.Place().Topic }

// Partition returns the record's partition.
func (c *Context) Partition() int32 { return c.rec.Place().Partition }

// Offset returns the record's offset; -1 in a visitor.
func (c *Context) Offset() int64 { return c.rec.Source().Offset }

// Key returns the record's key. See NullKey.
func (c *Context) Key() string { return string(c.rec.Key()) }

// NullKey reports whether the record has no key, which is not an empty one.
func (c *Context) NullKey() bool { return c.rec.Key() == nil }

// NullValue reports whether the record has no value. See Nulls.
func (c *Context) NullValue() bool { return c.rec.Source().Value == nil }

// Time returns the record's timestamp, to the millisecond.
func (c *Context) Time() time.Time { return time.UnixMilli(c.rec.Time()) }

// StreamTime returns the highest timestamp of the partition's records, this
// one included; the zero time before the first.
func (c *Context) StreamTime() time.Time {
	if ms := c.rec.StreamTime(); ms >= 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// Header returns the value of the first header of that name, and whether
// there is one. The bytes must not be changed and are valid for the callback.
func (c *Context) Header(name string) ([]byte, bool) {
	for _, h := range c.rec.Source().Headers {
		if h.Key == name {
			return h.Value, true
		}
	}
	return nil, false
}

// Headers yields the record's headers in order. See Header for the bytes.
func (c *Context) Headers() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, h := range c.rec.Source().Headers {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	}
}

// Failed returns the error that has stuck to the record, nil if all went
// well so far. From then on handles do nothing, and the record fails with it
// whatever the callback returns: a callback that is about to do something
// dear may ask first.
func (c *Context) Failed() error { return c.rec.Err() }

// keyBytes returns key as bytes that are valid until the next call.
func (c *Context) keyBytes(key string) []byte {
	if c.keyBuf = append(c.keyBuf[:0], key...); c.keyBuf == nil {
		c.keyBuf = []byte{}
	}
	return c.keyBuf
}
