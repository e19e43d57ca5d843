package replica

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest/observer"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// follower feeds one partition of a fakeKafka to a Replica, as an owner does.
type follower struct {
	t       *testing.T
	k       *fakeKafka
	builder storage.Builder
	rep     *Replica
	logs    *observer.ObservedLogs
	owned   bool
	accept  func(*kafka.Record) bool
	first   bool // the next batch is the first since Start
}

var tp0 = kafka.TopicPartition{Topic: "t"}

func newFollower(t *testing.T) *follower {
	f := &follower{t: t, k: newFakeKafka(), builder: storage.Memory()}
	f.k.create("t", 1)
	return f
}

// open makes a replica over what the store holds. What was open crashes.
func (f *follower) open() {
	f.builder.(interface{ Crash() }).Crash()
	s, err := f.builder.Open()
	if err != nil {
		f.t.Fatal(err)
	}
	st, err := s.Table("t", 0)
	if err != nil {
		f.t.Fatal(err)
	}
	tab, err := NewTable(TableConfig{Store: st})
	if err != nil {
		f.t.Fatal(err)
	}
	log, logs := warnings()
	f.logs = logs
	f.rep = New(Config{TopicPartition: tp0, Table: tab, Owned: f.owned, Accept: f.accept, Clock: kafka.SystemClock(), Log: log})
}

func (f *follower) bounds() Bounds {
	all, err := AskBounds(f.t.Context(), f.k.Admin(), "t", 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return all[0]
}

// start opens and starts with the last stable offset as the target.
func (f *follower) start() {
	f.open()
	b := f.bounds()
	if err := f.rep.Start(b, Target{At: b.LastStable}); err != nil {
		f.t.Fatal(err)
	}
	f.first = true
}

// step applies one batch and reports whether there was one.
func (f *follower) step() bool {
	to := f.rep.Follow()
	f.k.mu.Lock()
	b, ok := f.k.batchAt(&to, f.first)
	f.k.mu.Unlock()
	f.first = false
	if !ok {
		return false
	}
	again, err := f.rep.Apply(&b)
	if err != nil {
		f.t.Fatal(err)
	}
	f.first = again
	return true
}

func (f *follower) catchUp() {
	for !f.rep.done() && f.step() {
	}
}

func (f *follower) flush() {
	if err := f.rep.t.FlushNow(); err != nil {
		f.t.Fatal(err)
	}
}

// rows returns what a scan yields, after checking that Get agrees.
func (f *follower) rows() map[string]string {
	out := map[string]string{}
	for row, err := range f.rep.t.Scan(storage.Range{}) {
		if err != nil {
			f.t.Fatal(err)
		}
		out[string(row.Key)] = string(row.Value)
	}
	for k, want := range out {
		if got, _, ok, err := f.rep.t.Get([]byte(k)); err != nil || !ok || string(got) != want {
			f.t.Errorf("Get(%s) = %q, %v, %v; the scan has %q", k, got, ok, err, want)
		}
	}
	return out
}

func (f *follower) want(rows map[string]string, position int64, state State) {
	f.t.Helper()
	if got := f.rows(); !maps.Equal(got, rows) {
		f.t.Errorf("rows %v, want %v", got, rows)
	}
	if f.rep.Position() != position || f.rep.State() != state {
		f.t.Errorf("position %d in state %d, want %d in %d", f.rep.Position(), f.rep.State(), position, state)
	}
}

func (f *follower) wantWarnings(n int) {
	f.t.Helper()
	if f.logs.Len() != n {
		f.t.Errorf("%d warnings, want %d: %v", f.logs.Len(), n, f.logs.All())
	}
}

func tenKeys(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprint("k", i)] = fmt.Sprint(i)
	}
	return m
}

func (f *follower) writeKeys(from, to int) {
	for i := from; i < to; i++ {
		f.k.write("t", 0, fmt.Sprint("k", i), []byte(fmt.Sprint(i)))
	}
}

func TestRestoreOfAnEmptyTopicEndsAtOnce(t *testing.T) {
	f := newFollower(t)
	f.start()
	f.want(map[string]string{}, 0, Live)
	f.writeKeys(0, 1)
	f.catchUp()
	f.want(tenKeys(1), 1, Live)
}

func TestRestoreOfALogEmptiedByRetentionEndsAtItsEnd(t *testing.T) {
	f := newFollower(t)
	f.writeKeys(0, 500)
	f.k.trim("t", 0, 500)
	f.start()
	f.want(map[string]string{}, 500, Live)
	f.k.write("t", 0, "k", []byte("new"))
	f.catchUp()
	f.flush()
	f.start()
	f.want(map[string]string{"k": "new"}, 501, Live)
	f.wantWarnings(0)
}

func TestRestartReadsOnlyWhatIsMissing(t *testing.T) {
	for _, missing := range []int{0, 1} {
		f := newFollower(t)
		f.writeKeys(0, 10-missing)
		f.start()
		f.catchUp()
		f.flush()
		f.writeKeys(10-missing, 10)
		f.start()
		if wasLive := f.rep.State() == Live; wasLive != (missing == 0) {
			t.Errorf("%d missing: live at once is %v", missing, wasLive)
		}
		f.catchUp()
		f.want(tenKeys(10), 10, Live)
		if got := f.rep.Progress().Rows; got != int64(missing) {
			t.Errorf("read %d records, want %d", got, missing)
		}
	}
}

func TestRestoreEndsInsideABatchThatGoesBeyondItsTarget(t *testing.T) {
	f := newFollower(t)
	f.k.batch = 60
	f.writeKeys(0, 100)
	f.start()
	f.step()
	f.writeKeys(100, 150)
	f.step() // 60 to 119: the target 100 is in the middle
	f.want(tenKeys(120), 120, Live)
	f.catchUp()
	f.want(tenKeys(150), 150, Live)
	if p := f.rep.Progress(); p.Rows != 150 {
		t.Errorf("applied %d records, want each of 150 once", p.Rows)
	}
}

func TestRestoreToAnExactTargetStopsThere(t *testing.T) {
	f := newFollower(t)
	f.writeKeys(0, 150)
	f.open()
	if err := f.rep.Start(f.bounds(), Target{At: 42, Exact: true}); err != nil {
		t.Fatal(err)
	}
	f.first = true
	f.step()
	f.want(tenKeys(42), 42, Live)
	f.step()
	f.want(tenKeys(42), 42, Live)
}

func TestExactTargetBelowTheCheckpointRebuilds(t *testing.T) {
	f := newFollower(t)
	f.writeKeys(0, 50)
	f.start()
	f.catchUp()
	f.flush()
	f.open()
	if err := f.rep.Start(f.bounds(), Target{At: 20, Exact: true}); err != nil {
		t.Fatal(err)
	}
	f.catchUp()
	f.want(tenKeys(20), 20, Live)
	f.wantWarnings(1)
}

func TestDeletesInTheLogDelete(t *testing.T) {
	f := newFollower(t)
	f.k.write("t", 0, "a", []byte("1"))
	f.k.write("t", 0, "b", []byte("2"))
	f.k.write("t", 0, "a", nil)
	f.start()
	f.catchUp()
	f.want(map[string]string{"b": "2"}, 3, Live)
	f.flush()
	f.start()
	f.want(map[string]string{"b": "2"}, 3, Live)
}

func TestDeleteOfARowThatCompactionRemoved(t *testing.T) {
	f := newFollower(t)
	f.k.write("t", 0, "x", nil)
	f.k.write("t", 0, "y", []byte("1"))
	f.start()
	f.catchUp()
	f.flush()
	f.want(map[string]string{"y": "1"}, 2, Live)
}

func TestEmptyValueAndEmptyKeyAreARow(t *testing.T) {
	f := newFollower(t)
	f.k.write("t", 0, "", []byte{})
	f.k.change(func() {
		l := f.k.log("t", 0)
		l.records = append(l.records, kafka.Record{Value: []byte("no key"), Offset: 1})
		l.end = 2
	})
	f.start()
	f.catchUp()
	f.flush()
	f.start()
	f.want(map[string]string{"": ""}, 2, Live)
}

func TestNullKeysAreCountedAndSkipped(t *testing.T) {
	f := newFollower(t)
	f.k.change(func() {
		l := f.k.log("t", 0)
		l.records = []kafka.Record{{Value: []byte("v")}, {Key: []byte("k"), Value: []byte("v"), Offset: 1}}
		l.end = 2
	})
	f.start()
	f.catchUp()
	f.want(map[string]string{"k": "v"}, 2, Live)
	if n := f.rep.Progress().NullKeys; n != 1 {
		t.Errorf("%d null keys counted", n)
	}
}

func TestRestoreEndsBehindControlRecords(t *testing.T) {
	f := newFollower(t)
	f.writeKeys(0, 3)
	f.k.change(func() { f.k.log("t", 0).end = 9 }) // 3 to 8 are markers and aborted records
	f.start()
	f.catchUp()
	f.want(tenKeys(3), 9, Live)
}

func TestForeignOpenTransactionDoesNotHoldTheRestore(t *testing.T) {
	f := newFollower(t)
	f.writeKeys(0, 5)
	f.k.change(func() { f.k.log("t", 0).stable = 3 })
	f.start()
	f.catchUp()
	f.want(tenKeys(3), 3, Live)
}

func TestOwnChangelogIsRestoredToItsHighWatermark(t *testing.T) {
	f := newFollower(t)
	f.owned = true
	f.writeKeys(0, 5)
	f.k.change(func() { f.k.log("t", 0).stable = 3 })
	f.open()
	b := f.bounds()
	if err := f.rep.Start(b, Target{At: b.HighWatermark}); err != nil {
		t.Fatal(err)
	}
	f.first = true
	f.catchUp()
	f.want(tenKeys(3), 3, Restoring)
	f.k.change(func() { f.k.log("t", 0).stable = -1 })
	f.catchUp()
	f.want(tenKeys(5), 5, Live)
}

func TestCheckpointBeforeTheLogStartRebuilds(t *testing.T) {
	f := newFollower(t)
	f.writeKeys(0, 100)
	f.start()
	f.catchUp()
	f.flush()
	f.writeKeys(100, 200)
	f.k.trim("t", 0, 150)
	f.start()
	f.catchUp()
	want := map[string]string{}
	for i := 150; i < 200; i++ {
		want[fmt.Sprint("k", i)] = fmt.Sprint(i)
	}
	f.want(want, 200, Live)
	f.wantWarnings(1)
	f.flush()
	f.start()
	f.want(want, 200, Live)
	f.wantWarnings(0)
}

func TestCheckpointBehindTheLogEndRebuilds(t *testing.T) {
	f := newFollower(t)
	f.writeKeys(0, 100)
	f.start()
	f.catchUp()
	f.flush()
	f.k.change(func() { l := f.k.log("t", 0); l.records, l.end = l.records[:40], 40 })
	f.start()
	f.catchUp()
	f.want(tenKeys(40), 40, Live)
	f.wantWarnings(1)
}

func TestLogTrimmedUnderARunningRestoreRebuilds(t *testing.T) {
	f := newFollower(t)
	f.k.batch = 10
	f.writeKeys(0, 100)
	f.start()
	f.step()
	f.k.trim("t", 0, 60)
	f.catchUp()
	if f.rep.State() != Live || len(f.rows()) != 40 || f.rows()["k5"] != "" {
		t.Errorf("state %d, %d rows", f.rep.State(), len(f.rows()))
	}
	f.wantWarnings(1)
}

func TestAnotherTopicBehindTheName(t *testing.T) {
	for _, owned := range []bool{false, true} {
		f := newFollower(t)
		f.owned = owned
		f.writeKeys(0, 10)
		f.start()
		f.catchUp()
		f.flush()
		f.k.create("t", 1)
		f.k.write("t", 0, "new", []byte("1"))
		f.open()
		b := f.bounds()
		err := f.rep.Start(b, Target{At: b.LastStable})
		if owned {
			if !errors.Is(err, kafka.ErrTopicChanged) {
				t.Errorf("owned: %v", err)
			}
			f.flush()
			if len(f.rows()) != 10 {
				t.Error("owned: rows were deleted")
			}
			continue
		}
		f.first = true
		f.catchUp()
		f.want(map[string]string{"new": "1"}, 1, Live)
		f.wantWarnings(1)
	}
}

func TestCheckpointOlderThanTombstonesRebuilds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.k.write("t", 0, "a", []byte("1"))
		f.k.write("t", 0, "b", []byte("1"))
		f.start()
		f.catchUp()
		f.flush()
		time.Sleep(22 * time.Hour)
		f.start()
		f.want(map[string]string{"a": "1", "b": "1"}, 2, Live)
		f.wantWarnings(0)
		time.Sleep(2 * time.Hour) // 24 h since the end was seen
		// Meanwhile a was deleted, and compaction removed all traces of it.
		f.k.change(func() { l := f.k.log("t", 0); l.records, l.end = l.records[1:], 3 })
		f.start()
		f.catchUp()
		f.want(map[string]string{"b": "1"}, 3, Live)
		f.wantWarnings(1)
	})
}

func TestRestoreThatOutlastsTombstonesRebuilds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.k.batch = 1
		f.writeKeys(0, 3)
		f.start()
		f.catchUp()
		f.flush()
		f.writeKeys(3, 6)
		f.start()
		f.step()
		time.Sleep(24 * time.Hour)
		f.catchUp()
		f.want(tenKeys(6), 6, Live)
		f.wantWarnings(1)
	})
}

func TestIdleTopicIsNotRebuiltWhenItsEndIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.writeKeys(0, 3)
		f.start()
		f.catchUp()
		for range 10 {
			time.Sleep(12 * time.Hour)
			f.rep.NoteEnd(3, time.Now())
		}
		f.writeKeys(3, 4)
		f.catchUp()
		f.flush()
		time.Sleep(12 * time.Hour)
		f.start()
		f.want(tenKeys(4), 4, Live)
		f.wantWarnings(0)
	})
}

func TestOldCheckpointOfALogThatHasNotGrownIsSound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.writeKeys(0, 3)
		f.start()
		f.catchUp()
		f.flush()
		time.Sleep(72 * time.Hour)
		f.start()
		f.writeKeys(3, 4)
		f.catchUp()
		f.want(tenKeys(4), 4, Live)
		f.wantWarnings(0)
	})
}

func TestRefusedRecordsAreAbsentAndCounted(t *testing.T) {
	f := newFollower(t)
	f.accept = func(rec *kafka.Record) bool { return string(rec.Value) != "bad" }
	f.k.write("t", 0, "k1", []byte("ok"))
	f.k.write("t", 0, "k2", []byte("ok"))
	f.k.write("t", 0, "k2", []byte("bad"))
	f.start()
	f.catchUp()
	f.want(map[string]string{"k1": "ok"}, 3, Live)
	f.flush()
	f.start()
	f.want(map[string]string{"k1": "ok"}, 3, Live)
	f.builder = storage.Memory() // a wiped disk
	f.start()
	f.catchUp()
	f.want(map[string]string{"k1": "ok"}, 3, Live)
	if n := f.rep.Progress().Skipped; n != 1 {
		t.Errorf("%d skipped", n)
	}
}

func TestProgressOfARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.writeKeys(0, 400)
		f.start()
		f.step()
		time.Sleep(time.Second)
		p := f.rep.Progress()
		if p.State != Restoring || p.Restored != 100 || p.Remaining() != 300 || p.Rate() != 100 || p.Estimate() != 3*time.Second {
			t.Errorf("progress %+v: remaining %d, rate %v, estimate %v", p, p.Remaining(), p.Rate(), p.Estimate())
		}
		f.catchUp()
		if p = f.rep.Progress(); p.State != Live || p.Remaining() != 0 || p.Elapsed != time.Second || p.Restored != 400 {
			t.Errorf("progress at the end %+v", p)
		}
	})
}

func TestRowsOfACrashBeforeTheFirstCheckpointAreClearedAway(t *testing.T) {
	f := newFollower(t)
	f.open()
	if err := f.rep.t.store.Apply([]storage.Row{{Key: []byte("ghost"), Value: make([]byte, 9)}}, nil); err != nil {
		t.Fatal(err)
	}
	f.k.write("t", 0, "a", []byte("1"))
	f.start()
	f.catchUp()
	f.want(map[string]string{"a": "1"}, 1, Live)
}
