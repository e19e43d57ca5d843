package replica

import (
	"bytes"
	"errors"
	"iter"
	"slices"

	"github.com/rekastream/reka/storage"
)

// Get appends the value of key to dst. It reports the row's time and whether
// there is one. Any goroutine may call it. ErrNotReady, wrapped, unless Ready
// or stale: a stale read answers with what is there, which may be nothing
// yet.
func (m *Mirror) Get(dst, key []byte, stale bool) (value []byte, time int64, ok bool, err error) {
	parts := m.parts.Load()
	if parts == nil || !stale && !m.readable.Load() {
		return dst, 0, false, m.notReady()
	}
	home := int32(0)
	if n := int32(len(*parts)); n > 1 {
		home = m.cfg.Client.Partitioner().Partition(key, n)
	}
	value, time, ok, err = (*parts)[home].get(dst, key, stale)
	if err == nil && !ok && m.misplaced.Load() {
		value, time, ok, err = getElsewhere(*parts, home, dst, key, stale)
	}
	if errors.Is(err, ErrNotReady) || errors.Is(err, storage.ErrClosed) {
		err = m.notReady()
	}
	return value, time, ok, err
}

// getElsewhere looks for a key where it is not expected. The newest row wins.
func getElsewhere(parts []*mirrorPart, home int32, dst, key []byte, stale bool) (value []byte, time int64, ok bool, err error) {
	value = dst
	var found []byte
	for _, p := range parts {
		if p.id == home {
			continue
		}
		v, t, has, err := p.get(nil, key, stale)
		if err != nil {
			return dst, 0, false, err
		}
		if has && (!ok || t > time) {
			found, time, ok = v, t, true
		}
	}
	return append(value, found...), time, ok, nil
}

// get reads without holding the lock over a read of the store.
func (p *mirrorPart) get(dst, key []byte, stale bool) ([]byte, int64, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if !stale && !p.usable {
			return dst, 0, false, ErrNotReady
		}
		t := p.rep.t
		if e, known := t.find(key); known {
			return append(dst, e.Value...), e.Time, !e.Absent, nil
		}
		t.reads++
		epoch := t.epoch
		stored, ok, err := p.readStore(t, dst, key)
		if err != nil {
			return dst, 0, false, err
		}
		if t.epoch != epoch {
			continue // a flush ended or the table was cleared: the answer may be old
		}
		value, time := splitStored(stored[len(dst):])
		if !ok {
			value, time = nil, 0
		}
		t.rows.Fill(key, value, time, !ok)
		return append(stored[:len(dst)], value...), time, ok, nil
	}
}

func (p *mirrorPart) readStore(t *Table, dst, key []byte) ([]byte, bool, error) {
	p.mu.Unlock()
	defer p.mu.Lock()
	return t.store.Get(dst, key)
}

// Scan yields the rows of all partitions in byte order of their keys, each
// partition as of one moment when the loop starts. Key and value are valid
// until the next step. An error is yielded last, with a zero Row: ErrNotReady
// as with Get, also when Run ends during the loop. Any goroutine may call it.
func (m *Mirror) Scan(r storage.Range, stale bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		views, err := m.freezeAll(stale)
		if err != nil {
			yield(Row{}, err)
			return
		}
		defer m.thawAll(views)
		guarded := func(row Row, err error) bool {
			if err == nil && m.closing.Load() {
				row, err = Row{}, m.notReady()
			}
			return yield(row, err) && err == nil
		}
		if len(views) == 1 {
			views[0].v.scan(r, guarded)
			return
		}
		mergeScans(views, r, guarded)
	}
}

// partView is one partition, frozen.
type partView struct {
	p *mirrorPart
	t *Table
	v *frozen
}

func (m *Mirror) freezeAll(stale bool) ([]partView, error) {
	m.mu.Lock()
	m.scans++ // from now on the store is not closed
	m.mu.Unlock()
	var views []partView
	parts := m.parts.Load()
	if parts == nil || m.closing.Load() || !stale && !m.readable.Load() {
		m.thawAll(nil)
		return nil, m.notReady()
	}
	for _, p := range *parts {
		p.mu.Lock()
		err := ErrNotReady
		var v *frozen
		if stale || p.usable {
			v, err = p.rep.t.freeze()
		}
		p.mu.Unlock()
		if err != nil {
			m.thawAll(views)
			if errors.Is(err, ErrNotReady) || errors.Is(err, storage.ErrClosed) {
				err = m.notReady()
			}
			return nil, err
		}
		views = append(views, partView{p, p.rep.t, v})
	}
	return views, nil
}

func (m *Mirror) thawAll(views []partView) {
	for _, v := range views {
		v.p.mu.Lock()
		v.t.thaw(v.v)
		v.p.mu.Unlock()
	}
	m.mu.Lock()
	m.scans--
	last := m.scans == 0
	m.mu.Unlock()
	if last && m.closing.Load() {
		m.box.Put(func() {}) // the owner waits for it
	}
}

func (m *Mirror) scanning() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scans
}

// scanHead is the next row of one partition.
type scanHead struct {
	row  Row
	next func() (Row, error, bool)
}

// mergeScans yields the rows of all views in order. Of a key that is in two
// partitions the newest row counts.
func mergeScans(views []partView, r storage.Range, yield func(Row, error) bool) {
	heads := make([]*scanHead, 0, len(views))
	for _, v := range views {
		next, stop := iter.Pull2(func(yield func(Row, error) bool) { v.v.scan(r, yield) })
		defer stop()
		heads = append(heads, &scanHead{next: next})
	}
	heads = advanceAll(heads, heads, yield)
	var same []*scanHead
	for len(heads) > 0 {
		best := heads[0]
		same = append(same[:0], best)
		for _, h := range heads[1:] {
			c := bytes.Compare(h.row.Key, best.row.Key)
			if r.Reverse {
				c = -c
			}
			switch {
			case c < 0:
				best = h
				same = append(same[:0], h)
			case c == 0:
				same = append(same, h)
				if h.row.Time > best.row.Time {
					best = h
				}
			}
		}
		if !yield(best.row, nil) {
			return
		}
		heads = advanceAll(heads, same, yield)
	}
}

// advanceAll moves some of the heads on and drops those that are at their end.
// After an error, which it yields, it returns nil.
func advanceAll(heads, some []*scanHead, yield func(Row, error) bool) []*scanHead {
	ended := false
	for _, h := range some {
		row, err, ok := h.next()
		if err != nil {
			yield(Row{}, err)
			return nil
		}
		h.row = row
		if !ok {
			h.next, ended = nil, true
		}
	}
	if !ended {
		return heads
	}
	return slices.DeleteFunc(slices.Clone(heads), func(h *scanHead) bool { return h.next == nil })
}
