package badgerstore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/storagetest"
)

// crashKills is how often the child is killed; more with REKA_CRASH_KILLS.
const crashKills = 10

const crashKeys = 5000

// crashBatch returns batch i: always the same, of changing size. Every value
// says which batch wrote it.
func crashBatch(i int64) []storage.Row {
	rnd := rand.New(rand.NewPCG(7, uint64(i)))
	n := 1 + rnd.IntN(40)
	switch rnd.IntN(8) {
	case 0:
		n = 3000
	case 1:
		n = 1000
	}
	var rows []storage.Row
	for range n {
		rows = append(rows, storage.Row{Key: fmt.Appendf(nil, "k%d", rnd.IntN(crashKeys)), Value: crashValue(i, 100)})
	}
	if rnd.IntN(10) == 0 {
		rows = append(rows, storage.Row{Key: []byte("big"), Value: crashValue(i, chunkSize*3)})
	}
	return rows
}

// crashValue returns a value of n bytes, eight of them for each i.
func crashValue(i int64, n int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%08d", i), n/8)
}

// childWrite applies batches for ever, going on behind its checkpoint. Two of
// three batches have one.
func childWrite(dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	s, err := In(dir).Open()
	fail(err)
	tab, err := s.Table("t", 0)
	fail(err)
	cp, _, err := tab.Checkpoint()
	fail(err)
	fmt.Println("ready")
	for i := cp.Position + 1; ; i++ {
		var next *storage.Checkpoint
		if i%3 != 0 {
			next = &storage.Checkpoint{Position: i}
		}
		fail(tab.Apply(crashBatch(i), next))
	}
}

// TestKilledAtAnyTimeNeverAheadOfRows kills a writer again and again. Each
// time the directory opens by itself and has, for every key, the value of its
// last batch up to the checkpoint, or of one of the batches that had begun
// behind it.
func TestKilledAtAnyTimeNeverAheadOfRows(t *testing.T) {
	kills := crashKills
	if n, err := strconv.Atoi(os.Getenv("REKA_CRASH_KILLS")); err == nil {
		kills = n
	}
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	want := map[string]int64{} // last batch of each key, up to done
	done := int64(0)
	for kill := range kills {
		c := startChild(t, "write", dir)
		timer := time.NewTimer(time.Duration(rnd.IntN(300)) * time.Millisecond)
		<-timer.C
		c.kill()

		s, tab := mustOpen(t, dir)
		cp, _, err := tab.Checkpoint()
		if err != nil || cp.Position < done {
			t.Fatalf("kill %d: checkpoint %d after %d: %v", kill, cp.Position, done, err)
		}
		for ; done < cp.Position; done++ {
			for _, row := range crashBatch(done + 1) {
				want[string(row.Key)] = done + 1
			}
		}
		checkCrashed(t, tab, done, want)
		mustClose(t, s)
	}
	t.Logf("%d kills, %d batches", kills, done)
}

func checkCrashed(t *testing.T, tab storage.Table, done int64, want map[string]int64) {
	t.Helper()
	later := map[string][]int64{} // batches that may have begun
	for i := done + 1; i <= done+3; i++ {
		for _, row := range crashBatch(i) {
			later[string(row.Key)] = append(later[string(row.Key)], i)
		}
	}
	s, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	seen := map[string]bool{}
	for row, err := range s.Scan(storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		key := string(row.Key)
		seen[key] = true
		got, err := strconv.ParseInt(string(row.Value[:8]), 10, 64)
		if err != nil || !bytes.Equal(row.Value, crashValue(got, len(row.Value))) {
			t.Fatalf("%s: torn value %.40q", key, row.Value)
		}
		ok := got == want[key]
		for _, i := range later[key] {
			ok = ok || got == i
		}
		if !ok {
			t.Fatalf("%s is of batch %d; up to checkpoint %d it was %d, later %v", key, got, done, want[key], later[key])
		}
	}
	for key := range want {
		if !seen[key] {
			t.Fatalf("%s of batch %d is missing at checkpoint %d", key, want[key], done)
		}
	}
}

// A copy of an open directory is what a kill leaves.
func TestCopyOfAnOpenDirectoryHasAllThatWasApplied(t *testing.T) {
	dir := t.TempDir()
	s, tab := mustOpen(t, dir)
	defer s.Close()
	for i := range int64(4) {
		if err := tab.Apply(randomRows(5000, 10_000, 100), &storage.Checkpoint{Position: i}); err != nil {
			t.Fatal(err)
		}
		want := storagetest.Dump(t, tab, storage.Range{})
		copied, tab2 := mustOpen(t, copyTree(t, dir))
		got := storagetest.Dump(t, tab2, storage.Range{})
		cp, ok, err := tab2.Checkpoint()
		if len(got) != len(want) || !ok || cp.Position != i || err != nil {
			t.Fatalf("%d rows of %d, checkpoint %d: %v", len(got), len(want), cp.Position, err)
		}
		mustClose(t, copied)
	}
}
