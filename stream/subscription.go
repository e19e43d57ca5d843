package stream

import (
	"bytes"
	"encoding/binary"
	"iter"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/window"
)

// subscriptions are those of the left rows of a join by foreign key, in a
// store of the left side:
//
//	last                      the highest number of a subscription that ended
//	key                       number, time of the right row, its key
//
// A row's next subscription has the next number. One that had none begins above
// all that have ended, so above its own that are over.
type subscriptions struct{ st *store }

const (
	subscriptionLast = 1
	subscriptionKey  = 2
)

// subscription is that of a left row.
type subscription struct {
	number    uint64
	rightTime int64  // of the right row, as far as it is known; 0: none
	to        string // key of the right row
}

func (s *subscriptions) key(x *exec, key []byte) []byte {
	x.keyBuf = append(append(x.keyBuf[:0], subscriptionKey), key...)
	return x.keyBuf
}

func (s *subscriptions) get(x *exec, key []byte) (out subscription, ok bool) {
	raw, ok := x.rec.Get(s.st.index, s.key(x, key))
	if !ok {
		return out, false
	}
	number, n := binary.Uvarint(raw)
	time, m := binary.Uvarint(raw[max(n, 0):])
	if n <= 0 || m <= 0 {
		return out, false
	}
	return subscription{number, int64(time), string(raw[n+m:])}, true
}

func (s *subscriptions) set(x *exec, key []byte, to subscription) {
	x.valueBuf = binary.AppendUvarint(x.valueBuf[:0], to.number)
	x.valueBuf = binary.AppendUvarint(x.valueBuf, uint64(to.rightTime))
	x.valueBuf = append(x.valueBuf, to.to...)
	x.rec.Set(s.st.index, s.key(x, key), x.valueBuf)
}

// end takes one away.
func (s *subscriptions) end(x *exec, key []byte, was subscription) {
	x.rec.Set(s.st.index, s.key(x, key), nil)
	if was.number > s.last(x) {
		x.valueBuf = binary.AppendUvarint(x.valueBuf[:0], was.number)
		x.rec.Set(s.st.index, []byte{subscriptionLast}, x.valueBuf)
	}
}

// last is the highest number of those that have ended.
func (s *subscriptions) last(x *exec) uint64 {
	raw, ok := x.rec.Get(s.st.index, []byte{subscriptionLast})
	if !ok {
		return 0
	}
	n, _ := binary.Uvarint(raw)
	return n
}

// subscribers are the subscriptions in a store of the right side: under the
// right row's key, then the left one's, the number.
type subscribers struct{ st *store }

// subscriber is one of them.
type subscriber struct {
	to, left []byte
	number   uint64
}

func (s *subscribers) key(x *exec, to, left []byte) []byte {
	x.keyBuf = append(window.AppendKey(x.keyBuf[:0], to), left...)
	return x.keyBuf
}

func (s *subscribers) set(x *exec, sub subscriber) {
	x.valueBuf = binary.AppendUvarint(x.valueBuf[:0], sub.number)
	x.rec.Set(s.st.index, s.key(x, sub.to, sub.left), x.valueBuf)
}

func (s *subscribers) end(x *exec, to, left []byte) {
	key := s.key(x, to, left)
	if _, ok := x.rec.Get(s.st.index, key); ok {
		x.rec.Set(s.st.index, key, nil)
	}
}

// of yields those of a right row. Their bytes are valid until the next step.
func (s *subscribers) of(x *exec, to []byte) iter.Seq[subscriber] {
	return func(yield func(subscriber) bool) {
		prefix := window.AppendKey(nil, to)
		for row, err := range x.rec.Scan(s.st.index, storage.Prefix(prefix)) {
			if err != nil {
				return // it has stuck
			}
			number, _ := binary.Uvarint(row.Value)
			if !yield(subscriber{to: to, left: bytes.TrimPrefix(row.Key, prefix), number: number}) {
				return
			}
		}
	}
}
