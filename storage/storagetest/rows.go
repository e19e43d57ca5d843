package storagetest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rekastream/reka/storage"
)

func rows(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	wantAbsent(t, tab, "a")
	Apply(t, tab, Set("b", "2"), Set("a", "1"))
	wantGet(t, tab, "a", "1")
	wantGet(t, tab, "b", "2")
	Apply(t, tab, Set("a", "3"), Del("b"), Del("never there"))
	wantGet(t, tab, "a", "3")
	wantAbsent(t, tab, "b")
	equal(t, "rows", Dump(t, tab, storage.Range{}), []string{"a=3"})
	if err := tab.Apply(nil, nil); err != nil {
		t.Fatal(err)
	}
}

func lastWins(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	Apply(t, tab, Set("a", "1"), Set("b", "1"), Set("a", "2"), Del("b"), Set("c", "1"), Del("c"), Set("c", "3"))
	equal(t, "rows", Dump(t, tab, storage.Range{}), []string{"a=2", "c=3"})
	Apply(t, tab, Set("a", "4"), Set("a", "5"))
	equal(t, "rows", Dump(t, tab, storage.Range{}), []string{"a=5", "c=3"})
}

func emptyIsNotAbsent(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	Apply(t, tab, Set("", "of the empty key"), Set("a", ""))
	wantGet(t, tab, "", "of the empty key")
	wantGet(t, tab, "a", "")
	v, ok, err := tab.Get(nil, nil)
	if err != nil || !ok || string(v) != "of the empty key" {
		t.Fatalf("nil is the empty key: %q %v %v", v, ok, err)
	}
	equal(t, "rows", Dump(t, tab, storage.Range{}), []string{"=of the empty key", "a="})
	equal(t, "backwards", Dump(t, tab, storage.Range{Reverse: true}), []string{"a=", "=of the empty key"})
	Apply(t, tab, storage.Row{Key: nil})
	wantAbsent(t, tab, "")
}

func strangeKeys(t *testing.T, b storage.Builder) {
	s := Open(t, b)
	tab, next := Table(t, s, "t", 0), Table(t, s, "t", 1)
	Apply(t, next, Set("", "next"), Set("\xff", "next"))
	keys := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x01", "\x02", "\x03", "!badger!", "!badger!txn", "a", "a\x00", "a\xff",
		"b", "\xff", "\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xff\xff"}
	var want []string
	for i, k := range keys {
		Apply(t, tab, Set(k, fmt.Sprint(i)))
		want = append(want, k+"="+fmt.Sprint(i))
	}
	for i, k := range keys {
		wantGet(t, tab, k, fmt.Sprint(i))
	}
	equal(t, "rows", Dump(t, tab, storage.Range{}), want)
	for _, k := range keys {
		Apply(t, tab, Del(k))
	}
	equal(t, "rows after deletes", Dump(t, tab, storage.Range{}), nil)
	equal(t, "rows next door", Dump(t, next, storage.Range{}), []string{"=next", "\xff=next"})
}

// long returns keys around the lengths where stores have limits, in order.
func long() []string {
	p := strings.Repeat("k", 60_000)
	return []string{
		p[:59_999], p, p + "\x00", p + "a", p + "a\x00", p + "aa", p + "b", p[:50_000] + strings.Repeat("k", 15_000),
		p + strings.Repeat("k", 200_000), p + "l", p + "\xff", p[:59_999] + "l", p[:59_999] + "l\x00",
	}
}

func longKeys(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	keys := long()
	all := []storage.Row{Set("z", "z")}
	for i := range keys {
		i = (i + 5) % len(keys)
		all = append(all, Set(keys[i], fmt.Sprint(i)))
	}
	Apply(t, tab, all...)
	var want []string
	for i, k := range keys {
		wantGet(t, tab, k, fmt.Sprint(i))
		want = append(want, k+"="+fmt.Sprint(i))
	}
	equal(t, "rows", Dump(t, tab, storage.Range{}), append(want, "z=z"))
	for from := range keys {
		for to := from; to < len(keys); to++ {
			r := storage.Range{From: []byte(keys[from]), To: []byte(keys[to])}
			equal(t, "part", Dump(t, tab, r), want[from:to])
			r.Reverse = true
			equal(t, "part backwards", Dump(t, tab, r), backwards(want[from:to]))
		}
	}
	Apply(t, tab, Del(keys[3]), Set(keys[4], "new"), Del(keys[8]), Set(keys[8], "again"), Del(keys[9]+"never there"))
	wantAbsent(t, tab, keys[3])
	wantGet(t, tab, keys[4], "new")
	wantGet(t, tab, keys[8], "again")
	for _, k := range keys {
		Apply(t, tab, Del(k))
	}
	equal(t, "rows after deletes", Dump(t, tab, storage.Range{}), []string{"z=z"})
}

func bigValues(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	sizes := []int{512 << 10, 512<<10 + 1, 1 << 20, 1<<20 + 1, 3<<20 + 17}
	value := func(n int, c byte) string {
		v := bytes.Repeat([]byte{c}, n)
		v[0], v[n-1] = '<', '>'
		return string(v)
	}
	for i, n := range sizes {
		Apply(t, tab, Set(fmt.Sprint(i), value(n, 'x')))
	}
	longKey := strings.Repeat("9", 70_000)
	Apply(t, tab, Set(longKey, value(2<<20, 'y')))
	wantGet(t, tab, longKey, value(2<<20, 'y'))
	var want []string
	for i, n := range sizes {
		wantGet(t, tab, fmt.Sprint(i), value(n, 'x'))
		want = append(want, fmt.Sprint(i)+"="+value(n, 'x'))
	}
	equal(t, "rows", Dump(t, tab, storage.Range{}), append(want, longKey+"="+value(2<<20, 'y')))

	Apply(t, tab, Set("1", "small"), Set("2", value(sizes[2], 'z')), Del("3"), Set("0", value(2<<20, '0')), Del(longKey))
	wantGet(t, tab, "1", "small")
	wantGet(t, tab, "2", value(sizes[2], 'z'))
	wantGet(t, tab, "0", value(2<<20, '0'))
	wantGet(t, tab, "4", value(sizes[4], 'x'))
	wantAbsent(t, tab, "3")
	wantAbsent(t, tab, longKey)
	Apply(t, tab, Set("1", value(sizes[3], '1')), Set("1", "twice"), Set("3", value(sizes[3], '3')))
	wantGet(t, tab, "1", "twice")
	wantGet(t, tab, "3", value(sizes[3], '3'))
}

func callerKeepsSlices(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	key, value, owner := []byte("key"), []byte("value"), []byte("owner")
	if err := tab.Apply([]storage.Row{{Key: key, Value: value}}, &storage.Checkpoint{Position: 1, Owner: owner}); err != nil {
		t.Fatal(err)
	}
	copy(key, "xxx")
	copy(value, "xxxxx")
	copy(owner, "xxxxx")
	equal(t, "rows", Dump(t, tab, storage.Range{}), []string{"key=value"})
	wantCheckpoint(t, tab, &storage.Checkpoint{Position: 1, Owner: []byte("owner")})
	cp, _, _ := tab.Checkpoint()
	copy(cp.Owner, "xxxxx")
	wantCheckpoint(t, tab, &storage.Checkpoint{Position: 1, Owner: []byte("owner")})
	v, _, _ := tab.Get(nil, []byte("key"))
	copy(v, "xxxxx")
	wantGet(t, tab, "key", "value")
}

func getAppends(t *testing.T, b storage.Builder) {
	tab := Table(t, Open(t, b), "t", 0)
	big := strings.Repeat("v", 1<<20)
	Apply(t, tab, Set("a", "value"), Set("b", big), Set("e", ""))
	s, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	for _, get := range []func(dst, key []byte) ([]byte, bool, error){tab.Get, s.Get} {
		for _, room := range []int{0, 2, 100, 2 << 20} {
			for key, want := range map[string]string{"a": "value", "b": big, "e": "", "none": ""} {
				dst := append(make([]byte, 0, 4+room), "pre:"...)
				v, ok, err := get(dst, []byte(key))
				if err != nil || ok != (key != "none") || string(v) != "pre:"+want {
					t.Fatalf("get %q with room for %d: %.40q %v %v", key, room, v, ok, err)
				}
			}
		}
	}
}
