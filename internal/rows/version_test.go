package rows

import (
	"math"
	"testing"
)

func TestVersionsWrapAround(t *testing.T) {
	const budget = 256 << 10
	table := New(budget)
	table.version, table.cleaned = math.MaxUint32-3, math.MaxUint32-4
	versions := make([]uint32, 8)
	for i := range versions {
		table.Set([]byte{byte(i)}, []byte("value"), 1)
		versions[i], _ = sealText(table)
	}
	if first, last := versions[0], versions[7]; first != math.MaxUint32-3 || last != 4 {
		t.Fatalf("versions %d", versions)
	}
	for i, v := range versions {
		overflow(table, budget)
		for j := range versions {
			if _, ok := table.Find([]byte{byte(j)}); ok != (j >= i) {
				t.Fatalf("clean up to version %d of %d: row of version %d is here: %v", i, versions, j, ok)
			}
		}
		table.Clean(v)
		if got, want := table.UncleanBytes(), (len(versions)-1-i)*6; got != want {
			t.Errorf("unclean bytes %d, want %d", got, want)
		}
	}
}

func TestCleanRowsStayCleanHoweverOld(t *testing.T) {
	table := New(1 << 20)
	seal := func() uint32 { return table.Seal(func(_, _ []byte, _ int64, _ bool) {}) }
	table.Set([]byte("clean"), []byte("value"), 1)
	table.Clean(seal())
	table.Set([]byte("unclean"), []byte("value"), 1)
	for range ageEvery {
		seal()
	}
	rows := func() map[string]bool {
		seen := map[string]bool{}
		table.Each(func(key []byte, _ Entry, clean bool) bool {
			seen[string(key)] = clean
			return true
		})
		return seen
	}
	if got := rows(); !got["clean"] || got["unclean"] {
		t.Errorf("clean: %v", got)
	}
	const step = 3 << 30 // now the clean row's version would look like one to come
	table.version += step
	table.cleaned += step
	if got := rows(); !got["clean"] {
		t.Errorf("clean after many versions: %v", got)
	}
}
