package processor

import (
	"fmt"
	"iter"
	"slices"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// State is the handle of the group table: a value for each key, kept where
// the key's records are processed, written to the table topic, restored from
// there. Its methods are called from callbacks and concern the key of the
// record at hand.
type State[T any] struct {
	table reka.Table[T]
	binding
}

// Persist declares the group table, which must be that of the graph's group
// (see reka.GroupTable).
func Persist[T any](t reka.Table[T]) *State[T] { return &State[T]{table: t} }

func (*State[T]) isGroupTable() {}

func (s *State[T]) declare(d *declaration) error {
	if s == nil {
		return fmt.Errorf("group table: nil handle")
	}
	if err := checkTopic[T](s.table); err != nil {
		return fmt.Errorf("group table: %w", err)
	}
	if want := reka.TableTopic(d.graph.Group); s.table.Name() != want {
		return fmt.Errorf("group table is topic %s, want %s: declare it with GroupTable", s.table.Name(), want)
	}
	if slices.ContainsFunc(d.graph.Stores, func(s graph.Store) bool { return s.Name == tableStore }) {
		return fmt.Errorf("group table %s is declared twice", s.table.Name())
	}
	d.slots[s] = len(d.graph.Stores)
	d.graph.Stores = append(d.graph.Stores, graph.Store{Name: tableStore, Changelog: s.table.Name(), Of: "group table"})
	return nil
}

// Get returns the key's value, changes of this callback included, and whether
// there is one. The value is the caller's own. On a failure it reports false
// and the record fails: see Context.Failed.
func (s *State[T]) Get(ctx *Context) (T, bool) {
	if slot, ok := s.slot(ctx, s, "group table "+s.table.Name()); ok {
		return getRow(ctx, slot, ctx.rec.Key(), rowCodec[T]{s.table.Name(), s.table.Codec()})
	}
	var zero T
	return zero, false
}

// Set changes the key's value. It is encoded before Set returns.
func (s *State[T]) Set(ctx *Context, v T) {
	if slot, ok := s.slot(ctx, s, "group table "+s.table.Name()); ok {
		setRow(ctx, slot, ctx.rec.Key(), rowCodec[T]{s.table.Name(), s.table.Codec()}, v)
	}
}

// Delete removes the key's row, and leaves a tombstone in the table topic.
func (s *State[T]) Delete(ctx *Context) {
	if slot, ok := s.slot(ctx, s, "group table "+s.table.Name()); ok {
		ctx.rec.Set(slot, ctx.rec.Key(), nil)
	}
}

// rowCodec is a store's codec, with the name for errors.
type rowCodec[T any] struct {
	name  string
	codec codec.Codec[T]
}

func getRow[T any](ctx *Context, slot int, key []byte, c rowCodec[T]) (v T, ok bool) {
	raw, ok := ctx.rec.Get(slot, key)
	if !ok {
		return v, false
	}
	return decodeRow(ctx, raw, key, c)
}

func decodeRow[T any](ctx *Context, raw, key []byte, c rowCodec[T]) (v T, ok bool) {
	v, err := c.codec.Decode(raw)
	if err != nil {
		ctx.rec.Stick(StoredValueError(c.name, key, err))
		var zero T
		return zero, false
	}
	return v, true
}

func setRow[T any](ctx *Context, slot int, key []byte, c rowCodec[T], v T) {
	b, err := c.codec.Append(ctx.valueBuf[:0], v)
	if err != nil {
		ctx.rec.Stick(&kafka.Error{TopicPartition: kafka.TopicPartition{Topic: c.name, Partition: -1}, Offset: -1,
			Key: append([]byte{}, key...), Err: fmt.Errorf("encode: %w", err)})
		return
	}
	if b == nil {
		b = []byte{}
	}
	ctx.valueBuf = b
	ctx.rec.Set(slot, key, b)
}

// Rows is the handle of a further store of the group, read and written at any
// key. A key's rows live in the partition of the record that wrote them.
type Rows[T any] struct {
	storeName string
	codec     codec.Codec[T]
	local     bool
	bad       bool // a nil option
	binding
}

// StoreOption is an option of Store.
type StoreOption interface{ applyStore(*storeOptions) }

type storeOptions struct{ local, bad bool }

type storeOption func(*storeOptions)

func (f storeOption) applyStore(o *storeOptions) { f(o) }

// NoChangelog keeps the store on this machine only: it is emptied whenever a
// task starts, after a crash as after a move.
func NoChangelog() StoreOption { return storeOption(func(o *storeOptions) { o.local = true }) }

// Store declares a further store. Its changes go to the topic
// reka.ChangelogTopic(group, name).
func Store[T any](name string, c codec.Codec[T], opts ...StoreOption) *Rows[T] {
	var o storeOptions
	for _, opt := range opts {
		if opt == nil {
			o.bad = true
			continue
		}
		opt.applyStore(&o)
	}
	return &Rows[T]{storeName: name, codec: c, local: o.local, bad: o.bad}
}

func (s *Rows[T]) declare(d *declaration) error {
	switch {
	case s == nil:
		return fmt.Errorf("store: nil handle")
	case s.storeName == "":
		return fmt.Errorf("store: no name")
	case s.storeName == tableStore:
		return fmt.Errorf("store: the name %q is the group table's", s.storeName)
	case s.codec == nil:
		return fmt.Errorf("store %q has no codec", s.storeName)
	case s.bad:
		return fmt.Errorf("store %q: a nil option", s.storeName)
	}
	if err := d.once(s, s.what()); err != nil {
		return err
	}
	decl := graph.Store{Name: s.storeName, Of: "rows"}
	if !s.local {
		decl.Changelog = reka.ChangelogTopic(d.graph.Group, s.storeName)
	}
	d.graph.Stores = append(d.graph.Stores, decl)
	d.slots[s] = len(d.graph.Stores) - 1
	return nil
}

func (s *Rows[T]) what() string { return fmt.Sprintf("store %q", s.storeName) }

// Get returns the value of a key, changes of this callback included, and
// whether there is one. The value is the caller's own. On a failure it
// reports false and the record fails: see Context.Failed.
func (s *Rows[T]) Get(ctx *Context, key string) (T, bool) {
	if slot, ok := s.slot(ctx, s, s.what()); ok {
		return getRow(ctx, slot, ctx.keyBytes(key), rowCodec[T]{s.storeName, s.codec})
	}
	var zero T
	return zero, false
}

// Set changes the value of a key. It is encoded before Set returns.
func (s *Rows[T]) Set(ctx *Context, key string, v T) {
	if slot, ok := s.slot(ctx, s, s.what()); ok {
		setRow(ctx, slot, ctx.keyBytes(key), rowCodec[T]{s.storeName, s.codec}, v)
	}
}

// Delete removes a row.
func (s *Rows[T]) Delete(ctx *Context, key string) {
	if slot, ok := s.slot(ctx, s, s.what()); ok {
		ctx.rec.Set(slot, ctx.keyBytes(key), nil)
	}
}

// Range yields the rows with from ≤ key < to in byte order, changes of this
// callback included. An empty to means no upper bound. The store must not be
// changed from within the loop. On a failure the loop ends and the record
// fails: see Context.Failed.
func (s *Rows[T]) Range(ctx *Context, from, to string) iter.Seq2[string, T] {
	r := storage.Range{From: []byte(from)}
	if to != "" {
		r.To = []byte(to)
	}
	return s.scan(ctx, r)
}

// Reverse is Range from the last row to the first.
func (s *Rows[T]) Reverse(ctx *Context, from, to string) iter.Seq2[string, T] {
	r := storage.Range{From: []byte(from), Reverse: true}
	if to != "" {
		r.To = []byte(to)
	}
	return s.scan(ctx, r)
}

// Prefix is Range over the keys that begin with prefix.
func (s *Rows[T]) Prefix(ctx *Context, prefix string) iter.Seq2[string, T] {
	return s.scan(ctx, storage.Prefix([]byte(prefix)))
}

func (s *Rows[T]) scan(ctx *Context, r storage.Range) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		slot, ok := s.slot(ctx, s, s.what())
		if !ok {
			return
		}
		for row, err := range ctx.rec.Scan(slot, r) {
			if err != nil {
				return
			}
			v, ok := decodeRow(ctx, row.Value, row.Key, rowCodec[T]{s.storeName, s.codec})
			if !ok || !yield(string(row.Key), v) {
				return
			}
		}
	}
}
