package rows

import (
	"encoding/binary"
	"testing"
)

// Rows of windows come, are deleted, and become clean: what they leave must
// not fill the budget.
func TestRowsThatComeAndGoDoNotFillTheBudget(t *testing.T) {
	tab := New(64 << 20)
	tab.SetComplete()
	key := make([]byte, 16)
	most := 0
	for i := range 400_000 {
		binary.BigEndian.PutUint64(key, uint64(i))
		tab.Set(key, key[:8], 0)
		if i >= 1000 {
			binary.BigEndian.PutUint64(key, uint64(i-1000))
			tab.Set(key, nil, 0)
		}
		if i%5000 == 4999 {
			tab.Clean(tab.Seal(func([]byte, []byte, int64, bool) {}))
		}
		if i > 50_000 {
			most = max(most, tab.Bytes())
		}
	}
	if most > 4<<20 {
		t.Errorf("%d bytes for 1000 rows", most)
	}
	if !tab.Complete() {
		t.Error("the table is not complete any more")
	}
}
