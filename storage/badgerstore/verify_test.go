package badgerstore

import (
	"os"
	"testing"

	"github.com/rekastream/reka/storage/storagetest"
)

// FuzzLog feeds the reader of memtable logs: it must not panic, and must end
// inside the data.
func FuzzLog(f *testing.F) {
	dir := f.TempDir()
	s, tab := mustOpen(f, dir)
	storagetest.Apply(f, tab, storagetest.Set("a", "1"), storagetest.Set("b", "22"))
	logs, err := os.ReadDir(dir + "/" + rowsDir)
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range logs {
		if data, err := os.ReadFile(dir + "/" + rowsDir + "/" + e.Name()); err == nil && len(data) > 4096 {
			f.Add(data[:4096])
		}
	}
	mustClose(f, s)
	f.Add([]byte("01234567890123456789\x40\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < logHeader {
			return
		}
		if end := logEnd(data); end < logHeader || end > len(data) {
			t.Fatalf("end %d of %d bytes", end, len(data))
		}
	})
}

func FuzzBlock(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{1, 2, 3, 0, 0, 0, 1, 0x10, 1, 0, 0, 0, 2})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) { blockOK(b) })
}

// FuzzBody feeds the reader of long keys' rows.
func FuzzBody(f *testing.F) {
	f.Add([]byte{3, 'a', 'b', 'c', 'v'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		rest, value, err := splitBody(b)
		if err == nil && len(rest)+len(value) >= len(b) {
			t.Fatalf("%d and %d bytes out of %d", len(rest), len(value), len(b))
		}
	})
}
