package stream

import (
	"bytes"

	"github.com/rekastream/reka/storage"
)

// bound counts what a suppression holds back. What is held has an entry in the
// timeline open.
type bound struct {
	Suppression
	n     *node
	st    *store
	lag   int64  // an entry is due when the clock shows its time and lag
	clock *clock // nil: nothing comes due
}

// total is how much is held back, or how much more.
type total struct{ records, bytes int64 }

// count adds to what is held back, and reports whether that is too much.
func (b *bound) count(x *exec, more total) (over bool) {
	if !b.bounded() {
		return false
	}
	t := b.total(x)
	t.records += more.records
	t.bytes += more.bytes
	x.wireBuf = appendNumber(appendNumber(x.wireBuf[:0], t.records), t.bytes)
	x.rec.Set(b.st.index, totalRow, x.wireBuf)
	return b.exceeded(t)
}

// totalRow is the key of the row that counts what is held back. It is there
// where there is a bound.
var totalRow = []byte{5}

func (b *bound) total(x *exec) (t total) {
	if raw, ok := x.rec.Get(b.st.index, totalRow); ok {
		r := reader{b: raw}
		t = total{r.number(), r.number()}
	}
	return t
}

func (b *bound) exceeded(t total) bool {
	return t.records > 0 && (b.maxRecords > 0 && t.records > b.maxRecords || b.maxBytes > 0 && t.bytes > b.maxBytes)
}

// makeRoom lets go of what is held longest, until the rest is not too much.
// Where nothing may be let go before it is due the record fails.
func (b *bound) makeRoom(x *exec, letGo func(x *exec, entry []byte)) {
	for !x.failed() {
		t := b.total(x)
		if !b.exceeded(t) {
			return
		}
		entry := b.oldest(x)
		if entry == nil {
			return
		}
		if (b.fail || b.kind == untilClosed) && (b.clock == nil || entryTime(entry) > x.now(b.clock)-b.lag) {
			x.fail(&FullError{Operation: b.n.name, Records: t.records, Bytes: t.bytes})
			return
		}
		letGo(x, entry)
	}
}

// oldest returns the entry of what is held longest, nil if there is none.
func (b *bound) oldest(x *exec) []byte {
	for row, err := range x.rec.Scan(b.st.index, storage.Range{From: []byte{lineOpen}, To: []byte{lineOpen + 1}}) {
		if err != nil || len(row.Key) < rowHead {
			return nil // the record has failed
		}
		return bytes.Clone(row.Key)
	}
	return nil
}
