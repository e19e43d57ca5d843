package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/rekastream/reka/storage"
)

// Run tests a Builder. Open is called once for each test and returns a
// Builder of an empty store; what it made is its own to clean up.
func Run(t *testing.T, open func(t *testing.T) storage.Builder) {
	tests := []struct {
		name string
		run  func(*testing.T, storage.Builder)
	}{
		{"rows", rows},
		{"last of equal keys wins", lastWins},
		{"empty is not absent", emptyIsNotAbsent},
		{"strange keys", strangeKeys},
		{"long keys", longKeys},
		{"big values", bigValues},
		{"scan", scan},
		{"scan of everything after prefix of ff", scanAfterFF},
		{"caller keeps its slices", callerKeepsSlices},
		{"get appends", getAppends},
		{"checkpoint", checkpoint},
		{"snapshot stands still", snapshotStandsStill},
		{"writing while iterating", writingWhileIterating},
		{"snapshot ends", snapshotEnds},
		{"clear", clearTable},
		{"one holder", oneHolder},
		{"tables are apart", tablesAreApart},
		{"tables that exist", tablesThatExist},
		{"numbers", numbers},
		{"users are counted", usersAreCounted},
		{"closed", closed},
		{"survives close", survivesClose},
		{"many readers", manyReaders},
		{"model", func(t *testing.T, b storage.Builder) { Model(t, b, 1, 400) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// Open opens a Builder, to be closed at the end of the test.
func Open(t testing.TB, b storage.Builder) storage.Store {
	t.Helper()
	s, err := b.Open()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// Table opens a table, to be closed with its store.
func Table(t testing.TB, s storage.Store, name string, partition int32) storage.Table {
	t.Helper()
	tab, err := s.Table(name, partition)
	if err != nil {
		t.Fatalf("table: %v", err)
	}
	return tab
}

// Apply applies rows without a checkpoint.
func Apply(t testing.TB, tab storage.Table, rows ...storage.Row) {
	t.Helper()
	if err := tab.Apply(rows, nil); err != nil {
		t.Fatalf("apply: %v", err)
	}
}

// Set and Del make rows of strings.
func Set(key, value string) storage.Row {
	return storage.Row{Key: []byte(key), Value: append([]byte{}, value...)}
}

// Del makes a row that deletes.
func Del(key string) storage.Row { return storage.Row{Key: []byte(key)} }

// Dump returns the rows of a range as "key=value".
func Dump(t testing.TB, tab storage.Table, r storage.Range) []string {
	t.Helper()
	s, err := tab.Snapshot()
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	defer s.Release()
	var all []string
	for _, row := range list(t, s.Scan(r)) {
		all = append(all, string(row.Key)+"="+string(row.Value))
	}
	return all
}

// list collects a scan in copies, and checks that a value is never nil.
func list(t testing.TB, scan iter.Seq2[storage.Row, error]) (all []storage.Row) {
	t.Helper()
	for row, err := range scan {
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		if row.Value == nil {
			t.Fatalf("scan: nil value of %.40q", row.Key)
		}
		all = append(all, storage.Row{Key: bytes.Clone(row.Key), Value: bytes.Clone(row.Value)})
	}
	return all
}

func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %.300q, want %.300q", what, got, want)
	}
}

func get(t testing.TB, tab storage.Table, key string) (string, bool) {
	t.Helper()
	v, ok, err := tab.Get(nil, []byte(key))
	if err != nil {
		t.Fatalf("get %.40q: %v", key, err)
	}
	return string(v), ok
}

func wantGet(t testing.TB, tab storage.Table, key, value string) {
	t.Helper()
	if v, ok := get(t, tab, key); !ok || v != value {
		t.Fatalf("get %.40q: got %.40q (%d bytes), %v, want %.40q (%d bytes)", key, v, len(v), ok, value, len(value))
	}
}

func wantAbsent(t testing.TB, tab storage.Table, key string) {
	t.Helper()
	if v, ok := get(t, tab, key); ok {
		t.Fatalf("get %.40q: got %.40q, want none", key, v)
	}
}

// wantError checks that an error is the given one and names its place.
func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	var e *storage.Error
	if !errors.Is(err, want) || !errors.As(err, &e) || e.Place == "" {
		t.Fatalf("%s: got %v, want *storage.Error of %v", what, err, want)
	}
}

func wantCheckpoint(t testing.TB, tab storage.Table, want *storage.Checkpoint) {
	t.Helper()
	got, ok, err := tab.Checkpoint()
	if err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	if ok != (want != nil) {
		t.Fatalf("checkpoint: got %v, want %v", ok, want)
	}
	if want == nil {
		return
	}
	if got.Position != want.Position || got.LeaderEpoch != want.LeaderEpoch || got.TopicID != want.TopicID ||
		!got.AtEnd.Equal(want.AtEnd.Truncate(time.Millisecond)) || !bytes.Equal(got.Owner, want.Owner) {
		t.Fatalf("checkpoint: got %+v, want %+v", got, *want)
	}
}

// numbered returns n rows "prefix000000=i".
func numbered(prefix string, n int) []storage.Row {
	rows := make([]storage.Row, n)
	for i := range rows {
		rows[i] = Set(fmt.Sprintf("%s%06d", prefix, i), fmt.Sprint(i))
	}
	return rows
}
