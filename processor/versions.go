package processor

import (
	"fmt"
	"slices"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/window"
)

// VersionedRows is the handle of a store that keeps the versions of each key's
// value, and answers as of a time.
type VersionedRows[T any] struct {
	storeName string
	history   int64 // milliseconds
	codec     codec.Codec[T]
	binding
}

// VersionedStore declares a store of versions. Those that were replaced longer
// ago than history, in stream time, are deleted, the newest never. Its changes
// go to reka.ChangelogTopic(group, name).
func VersionedStore[T any](name string, history time.Duration, c codec.Codec[T]) *VersionedRows[T] {
	return &VersionedRows[T]{storeName: name, history: history.Milliseconds(), codec: c}
}

// Rows of versions have the keys
//
//	expiry ‖ time ‖ key     a version that the one before it waits for
//	row ‖ key ‖ time        a version: a byte that says whether it is a value, and the value
//
// Where the history has passed a version, the ones before it are deleted.
const (
	versionDeleted = 0
	versionValue   = 1
)

func (s *VersionedRows[T]) what() string { return fmt.Sprintf("store %q", s.storeName) }

func (s *VersionedRows[T]) declare(d *declaration) error {
	switch {
	case s == nil:
		return fmt.Errorf("store: nil handle")
	case s.storeName == "" || s.storeName == tableStore || s.storeName == periodicStore:
		return fmt.Errorf("store: the name %q is none, or taken", s.storeName)
	case s.codec == nil:
		return fmt.Errorf("store %q has no codec", s.storeName)
	case s.history < 0:
		return fmt.Errorf("store %q: history %d ms", s.storeName, s.history)
	}
	if err := d.once(s, s.what()); err != nil {
		return err
	}
	slot := d.store(graph.Store{Name: s.storeName, Changelog: reka.ChangelogTopic(d.graph.Group, s.storeName), Timelines: []byte{lineExpiry}, Of: "versions", Details: fmt.Sprintf("history %v", time.Duration(s.history)*time.Millisecond)})
	d.slots[s] = slot
	d.after = append(d.after, task.Step{Raise: -1, Run: &task.Timed{
		Name: s.storeName, Store: slot, Lazy: true, Chunk: 64,
		Lines: []task.Line{{Prefix: lineExpiry, Lag: s.history + 1}},
		Run: func(r *task.Record, due []task.Entry) error {
			for i := range due {
				dropBefore(r, slot, &due[i])
			}
			return nil
		},
	}})
	return nil
}

// dropBefore deletes the versions before one that history has passed, and it
// too if it says that there is nothing.
func dropBefore(r *task.Record, slot int, e *task.Entry) {
	r.Set(slot, e.Key, nil)
	key, _, err := window.SplitKey(nil, e.Key[1+8:])
	if err != nil {
		return
	}
	prefix := window.AppendKey([]byte{rowTimed}, key)
	own := window.AppendTime(slices.Clip(prefix), e.Time)
	if raw, ok := r.Get(slot, own); ok && len(raw) > 0 && raw[0] == versionDeleted {
		own = append(own, 0) // included
	}
	var gone [][]byte
	for row, err := range r.Scan(slot, storage.Range{From: prefix, To: own}) {
		if err != nil {
			return
		}
		gone = append(gone, append([]byte(nil), row.Key...))
	}
	for _, k := range gone {
		r.Set(slot, k, nil)
	}
}

// Set makes v the key's value from at on, until the next version. It reports
// whether it did: what lies before the history is not set.
func (s *VersionedRows[T]) Set(ctx *Context, key string, at time.Time, v T) bool {
	b, err := s.codec.Append([]byte{versionValue}, v)
	if err != nil {
		ctx.rec.Stick(&EncodeError{Err: fmt.Errorf("%s: %w", s.what(), err)})
		return false
	}
	return s.put(ctx, key, at, b)
}

// Delete makes the key have no value from at on. See Set.
func (s *VersionedRows[T]) Delete(ctx *Context, key string, at time.Time) bool {
	return s.put(ctx, key, at, []byte{versionDeleted})
}

func (s *VersionedRows[T]) put(ctx *Context, key string, at time.Time, value []byte) bool {
	slot, ok := s.slot(ctx, s, s.what())
	ms := at.UnixMilli()
	if !ok || ms < 0 || ms < ctx.rec.StreamTime()-s.history {
		return false
	}
	row := window.AppendTime(window.AppendKey([]byte{rowTimed}, []byte(key)), ms)
	ctx.rec.Set(slot, row, value)
	ctx.rec.Set(slot, window.AppendKey(window.AppendTime([]byte{lineExpiry}, ms), []byte(key)), []byte{})
	return true
}

// Get returns the newest version of a key, the time from which it holds, and
// whether there is a value.
func (s *VersionedRows[T]) Get(ctx *Context, key string) (v T, since time.Time, ok bool) {
	return s.asOf(ctx, key, maxTime)
}

// AsOf returns the version of a key that held at a time, the time from which
// it did, and whether there was a value. What lies before the history is not
// known: it reports false, unless the newest version is older.
func (s *VersionedRows[T]) AsOf(ctx *Context, key string, at time.Time) (v T, since time.Time, ok bool) {
	return s.asOf(ctx, key, at.UnixMilli())
}

func (s *VersionedRows[T]) asOf(ctx *Context, key string, at int64) (v T, since time.Time, ok bool) {
	slot, ok := s.slot(ctx, s, s.what())
	if !ok {
		return v, since, false
	}
	prefix := window.AppendKey([]byte{rowTimed}, []byte(key))
	rng := storage.Range{From: prefix, To: storage.Prefix(prefix).To, Reverse: true}
	if at < maxTime {
		if at < 0 {
			return v, since, false
		}
		rng.To = window.AppendTime(slices.Clip(prefix), at+1)
	}
	for row, err := range ctx.rec.Scan(slot, rng) {
		if err != nil || len(row.Value) == 0 || row.Value[0] == versionDeleted {
			return v, since, false
		}
		ms, _, err := window.SplitTime(row.Key[len(prefix):])
		if err != nil {
			return v, since, false
		}
		v, ok = decodeRow(ctx, row.Value[1:], []byte(key), rowCodec[T]{s.storeName, s.codec})
		return v, time.UnixMilli(ms), ok
	}
	return v, since, false
}
