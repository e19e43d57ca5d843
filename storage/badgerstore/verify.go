package badgerstore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
	badgertable "github.com/dgraph-io/badger/v4/table"

	"github.com/rekastream/reka/storage"
)

// Badger meets damaged files badly: a table with a broken end ends the
// process; a block with a wrong checksum makes its rows, or the newer version
// of a row, silently absent, and compaction makes that last; a broken log
// before the newest loses rows that a checkpoint in the next one counts on.
// So all files are checked before Badger sees them.

// verifyWorkers read tables at a time.
const verifyWorkers = 4

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// found is how many bytes lie in a directory: in logs of memtables that were
// not flushed, and in tables.
type found struct{ logs, tables int64 }

// verifyRows checks the files in Badger's directory and clears what a killed
// process leaves. An error that is storage.ErrDamaged says what is broken.
func verifyRows(dir string, opt badger.Options) (f found, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return f, err
	}
	var logs, tables []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch filepath.Ext(path) {
		case ".vlog":
			// No value is ever in one, and Badger makes a new one at each open.
			err = os.Remove(path)
		case ".mem":
			logs = append(logs, path)
		case ".sst":
			tables = append(tables, path)
		}
		if err != nil {
			return f, err
		}
	}
	// Only the value log's garbage collection, never run, would need it.
	if err := os.Remove(filepath.Join(dir, "DISCARD")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	if f.logs, err = verifyLogs(logs); err != nil {
		return f, err
	}
	f.tables, err = verifyTables(dir, tables, len(logs) > 0, opt)
	return f, err
}

// verifyLogs checks the logs of memtables. Each but the newest was synced
// before the next began: it must end cleanly. The newest may end in a torn
// entry, which is cut off.
func verifyLogs(paths []string) (size int64, err error) {
	number := func(path string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".mem"))
		return n
	}
	slices.SortFunc(paths, func(a, b string) int { return number(a) - number(b) })
	for i, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return size, err
		}
		if len(data) < logHeader {
			// Made and not yet filled when the process was killed.
			if err := os.Remove(path); err != nil {
				return size, err
			}
			continue
		}
		end := logEnd(data)
		size += int64(end)
		switch {
		case allZero(data[end:]):
		case i < len(paths)-1:
			return size, damaged(path, "broken entry at byte %d", end)
		default:
			if err := os.Truncate(path, int64(end)); err != nil {
				return size, err
			}
		}
	}
	return size, nil
}

const logHeader = 20

// logEnd returns where the whole entries of a memtable's log end.
func logEnd(data []byte) int {
	pos := logHeader
	for {
		n := logEntry(data[pos:])
		if n == 0 {
			return pos
		}
		pos += n
	}
}

// logEntry returns the size of the entry at the start of b, 0 if there is no
// whole one: two bytes, three varints (the first two the lengths of key and
// value), key, value, checksum.
func logEntry(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	size := uint64(2)
	var lengths [3]uint64
	for i := range lengths {
		n, w := binary.Uvarint(b[size:])
		if w <= 0 {
			return 0
		}
		lengths[i] = n
		size += uint64(w)
	}
	key, value := lengths[0], lengths[1]
	if key == 0 || key > 1<<16 || value > 1<<32 {
		return 0
	}
	size += key + value
	if uint64(len(b)) < size+4 || binary.BigEndian.Uint32(b[size:]) != crc32.Checksum(b[:size], crcTable) {
		return 0
	}
	return int(size) + 4
}

func allZero(b []byte) bool {
	var page [4096]byte
	for len(b) > len(page) {
		if !bytes.Equal(b[:len(page)], page[:]) {
			return false
		}
		b = b[len(page):]
	}
	return bytes.Equal(b, page[:len(b)])
}

// verifyTables checks the manifest and every table that it lists.
func verifyTables(dir string, onDisk []string, logs bool, opt badger.Options) (size int64, err error) {
	path := filepath.Join(dir, badger.ManifestFilename)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		if len(onDisk) > 0 || logs {
			// Badger would begin anew and delete the tables.
			return 0, damaged(path, "missing")
		}
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	m, end, err := badger.ReplayManifestFile(f, opt.ExternalMagicVersion, opt)
	if err != nil {
		return 0, damaged(path, "%v", err)
	}
	if st, err := f.Stat(); err != nil {
		return 0, err
	} else if st.Size() != end {
		// What was cut may have listed tables whose logs are gone.
		return 0, damaged(path, "ends in part of a change")
	}
	var names []string
	for id := range m.Tables {
		names = append(names, badgertable.NewFilename(id, dir))
	}
	return verifyAll(names)
}

func verifyAll(paths []string) (size int64, err error) {
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	next := make(chan string, len(paths)) // all of the work, so that nobody waits
	for _, p := range paths {
		next <- p
	}
	close(next)
	for range min(verifyWorkers, len(paths)) {
		// Ends when the paths are used up; verifyAll waits.
		wg.Go(func() {
			for p := range next {
				n, e := verifyTable(p)
				mu.Lock()
				size += n
				err = errors.Join(err, e)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return size, err
}

// verifyTable checks one table: blocks, index, index size (4 bytes), checksum
// of the index, its size (4).
func verifyTable(path string) (size int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, damaged(path, "missing")
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	index, start, err := readIndex(f, path)
	if err != nil {
		return 0, err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, start), 1<<20)
	var (
		offset fb.BlockOffset
		block  []byte
		pos    int64
	)
	for i := range index.OffsetsLength() {
		if !index.Offsets(&offset, i) || int64(offset.Offset()) != pos {
			return 0, damaged(path, "index entry %d", i)
		}
		block = slices.Grow(block[:0], int(offset.Len()))[:offset.Len()]
		if _, err := io.ReadFull(r, block); err != nil {
			return 0, readError(path, err)
		}
		if !blockOK(block) {
			return 0, damaged(path, "checksum of the block at byte %d", pos)
		}
		pos += int64(len(block))
	}
	return start, nil
}

// readIndex reads a table's index and returns where it starts.
func readIndex(f *os.File, path string) (*fb.TableIndex, int64, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	pos := st.Size()
	tail := func(n int64) []byte {
		if pos < n || err != nil {
			err = errors.Join(err, io.ErrUnexpectedEOF)
			return nil
		}
		pos -= n
		b := make([]byte, n)
		_, err = f.ReadAt(b, pos)
		return b
	}
	size := func() int64 {
		if b := tail(4); err == nil {
			return int64(binary.BigEndian.Uint32(b))
		}
		return 0
	}
	sum := tail(size())
	index := tail(size())
	switch {
	case err != nil:
		return nil, 0, readError(path, err)
	case len(index) == 0 || !sumOK(index, sum):
		return nil, 0, damaged(path, "checksum of the index")
	}
	t := fb.GetRootAsTableIndex(index, 0)
	if t.OffsetsLength() == 0 {
		return nil, 0, damaged(path, "no blocks")
	}
	return t, pos, nil
}

// blockOK checks a block: entries, their offsets (4 bytes each) and number
// (4), and not part of what is summed, checksum and its size (4).
func blockOK(b []byte) bool {
	if len(b) < 8 {
		return false
	}
	end := uint32(len(b) - 4)
	size := binary.BigEndian.Uint32(b[end:])
	if size > end-4 {
		return false
	}
	end -= size
	entries := binary.BigEndian.Uint32(b[end-4:])
	return uint64(entries)*4+4 <= uint64(end) && sumOK(b[:end], b[end:uint32(len(b)-4)])
}

// sumOK compares data with a stored checksum: a message of one field, the
// CRC32 as a varint, empty for zero.
func sumOK(data, sum []byte) bool {
	if len(sum) == 0 {
		return crc32.Checksum(data, crcTable) == 0
	}
	if len(sum) < 2 || sum[0] != 0x10 {
		return false
	}
	want, n := binary.Uvarint(sum[1:])
	return n == len(sum)-1 && want == uint64(crc32.Checksum(data, crcTable))
}

func readError(path string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged(path, "too short")
	}
	return err
}

func damaged(path, format string, a ...any) error {
	return fmt.Errorf("%w: %s: %s", storage.ErrDamaged, filepath.Base(path), fmt.Sprintf(format, a...))
}
