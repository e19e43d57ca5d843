package storage

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// check walks a tree: order, sizes, depth and the keys that part children.
func (n *node) check(t *testing.T, low, high []byte, depth int) (rows, leaf int) {
	t.Helper()
	if len(n.keys) == 0 || len(n.keys) > nodeSize {
		t.Fatalf("node of %d keys", len(n.keys))
	}
	if n.kids == nil {
		for i, k := range n.keys {
			if bytes.Compare(k, low) < 0 || high != nil && bytes.Compare(k, high) >= 0 ||
				i > 0 && bytes.Compare(n.keys[i-1], k) >= 0 {
				t.Fatalf("key %q out of order", k)
			}
		}
		return len(n.keys), depth
	}
	for i, kid := range n.kids {
		l, h := low, high
		if i > 0 {
			l = n.keys[i]
		}
		if i+1 < len(n.kids) {
			h = n.keys[i+1]
		}
		r, d := kid.check(t, l, h, depth+1)
		if i > 0 && d != leaf {
			t.Fatalf("leaves at depth %d and %d", d, leaf)
		}
		rows, leaf = rows+r, d
	}
	return rows, leaf
}

func TestTreeAgreesWithMapAndFrozenTreesStandStill(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var tr tree
	want := map[string]string{}
	type frozen struct {
		root *node
		want map[string]string
	}
	var old []frozen
	dump := func(n *node) map[string]string {
		m := map[string]string{}
		var last []byte
		n.ascend(Range{}, func(r Row) bool {
			if last != nil && bytes.Compare(last, r.Key) >= 0 {
				t.Fatalf("%q after %q", r.Key, last)
			}
			last = r.Key
			m[string(r.Key)] = string(r.Value)
			return true
		})
		return m
	}
	for round := range 60 {
		for range 500 {
			key := fmt.Sprint(rnd.IntN(4000))
			if rnd.IntN(100) < 30+round {
				tr.remove([]byte(key))
				delete(want, key)
				continue
			}
			value := fmt.Sprint(rnd.Int())
			tr.set([]byte(key), []byte(value))
			want[key] = value
		}
		if tr.len != len(want) {
			t.Fatalf("round %d: %d rows of %d", round, tr.len, len(want))
		}
		if tr.root != nil {
			if rows, _ := tr.root.check(t, nil, nil, 0); rows != len(want) {
				t.Fatalf("round %d: %d rows of %d", round, rows, len(want))
			}
		}
		if round%5 == 0 {
			old = append(old, frozen{tr.freeze(), maps.Clone(want)})
		}
		var back []string
		tr.root.descend(Range{}, func(r Row) bool { back = append(back, string(r.Key)); return true })
		slices.Reverse(back)
		if !slices.Equal(back, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("round %d: backwards", round)
		}
	}
	for i, f := range old {
		if !maps.Equal(dump(f.root), f.want) {
			t.Fatalf("frozen tree %d changed", i)
		}
	}
	for key := range want {
		tr.remove([]byte(key))
	}
	if tr.root != nil || tr.len != 0 {
		t.Fatalf("%d rows are left", tr.len)
	}
}
