package replica

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// restart opens and starts as an owner does, and says what it asked.
func (f *follower) restart() {
	f.t.Helper()
	f.open()
	b := f.bounds()
	if cp, ok := f.rep.t.Committed(); ok {
		if err := b.AskCut(f.t.Context(), f.k.Admin(), tp0, cp); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := f.rep.Start(b, Target{At: b.LastStable}); err != nil {
		f.t.Fatal(err)
	}
	f.first = true
	f.catchUp()
}

// durable returns the checkpoint in the store.
func (f *follower) durable() storage.Checkpoint {
	f.t.Helper()
	cp, ok, err := f.rep.t.store.Checkpoint()
	if err != nil || !ok {
		f.t.Fatalf("checkpoint %v, %v", ok, err)
	}
	return cp
}

// The offsets alone do not tell: the log may have grown to less than, just
// as far as, or beyond the checkpoint.
func TestCheckpointOfALogThatWasCutAndGrewAgainRebuilds(t *testing.T) {
	for _, end := range []int{40, 70, 100, 130} {
		t.Run(fmt.Sprint("to ", end), func(t *testing.T) {
			f := newFollower(t)
			f.writeKeys(0, 100)
			f.restart()
			f.flush()
			f.k.cut("t", 0, 40)
			want := tenKeys(40)
			for i := 40; i < end; i++ {
				f.k.write("t", 0, fmt.Sprint("k", i), []byte("new"))
				want[fmt.Sprint("k", i)] = "new"
			}
			f.restart()
			f.want(want, int64(end), Live)
			f.wantWarnings(1)
			f.flush()
			f.restart()
			f.want(want, int64(end), Live)
			f.wantWarnings(0)
		})
	}
}

// What was not read yet may be lost without harm, and so may nothing at all.
func TestLogCutBehindTheCheckpointIsReadOn(t *testing.T) {
	for _, at := range []int64{100, 120, 150} {
		f := newFollower(t)
		f.writeKeys(0, 100)
		f.restart()
		f.flush()
		f.writeKeys(100, 150)
		f.k.cut("t", 0, at)
		f.writeKeys(int(at), 200)
		f.restart()
		f.want(tenKeys(200), 200, Live)
		f.wantWarnings(0)
		if read := f.rep.Progress().Rows; read != 100 {
			t.Errorf("cut at %d: read %d records, want 100", at, read)
		}
	}
}

// A log whose older epochs went with retention tells nothing of them but
// where it begins.
func TestEpochThatRetentionRemovedIsJudgedByTheLogStart(t *testing.T) {
	for _, start := range []int64{100, 101} {
		f := newFollower(t)
		f.writeKeys(0, 100)
		f.restart()
		f.flush()
		f.k.cut("t", 0, 100)
		f.writeKeys(100, 150)
		f.k.trim("t", 0, start)
		f.k.change(func() { f.k.log("t", 0).epochs = []fakeEpoch{{2, start}} })
		f.restart()
		if start == 100 {
			f.want(tenKeys(150), 150, Live)
			f.wantWarnings(0)
			continue
		}
		f.wantWarnings(1)
		if n := len(f.rows()); n != 49 {
			t.Errorf("%d rows, want 49", n)
		}
	}
}

// As after the whole cluster was put back to an older state.
func TestEpochThatTheLogNeverHadRebuilds(t *testing.T) {
	f := newFollower(t)
	f.k.change(func() { f.k.log("t", 0).epochs = []fakeEpoch{{7, 0}} })
	f.writeKeys(0, 100)
	f.restart()
	f.flush()
	f.k.change(func() { f.k.log("t", 0).epochs = []fakeEpoch{{3, 0}} })
	f.restart()
	f.want(tenKeys(100), 100, Live)
	f.wantWarnings(1)
	if read := f.rep.Progress().Rows; read != 100 {
		t.Errorf("read %d records, want all 100", read)
	}
}

// A checkpoint tells the epoch of the record before its position, also where
// markers or nothing at all came after it.
func TestCheckpointTellsTheEpochOfItsLastRecord(t *testing.T) {
	f := newFollower(t)
	f.restart()
	f.rep.t.Advance(f.rep.Checkpoint())
	f.flush()
	if cp := f.durable(); cp.Position != 0 || cp.LeaderEpoch != -1 {
		t.Errorf("of an empty log: %d in epoch %d", cp.Position, cp.LeaderEpoch)
	}
	f.writeKeys(0, 10)
	f.k.cut("t", 0, 10)
	f.k.cut("t", 0, 10)
	f.catchUp()
	f.flush()
	if cp := f.durable(); cp.Position != 10 || cp.LeaderEpoch != 1 {
		t.Errorf("position %d in epoch %d, want 10 in 1", cp.Position, cp.LeaderEpoch)
	}
	f.k.change(func() { f.k.log("t", 0).end = 12 }) // two markers of the new leader
	f.catchUp()
	f.flush()
	if cp := f.durable(); cp.Position != 12 || cp.LeaderEpoch != 3 {
		t.Errorf("position %d in epoch %d, want 12 in 3", cp.Position, cp.LeaderEpoch)
	}
	f.restart()
	f.wantWarnings(0)
	f.rep.t.Advance(f.rep.Checkpoint())
	f.flush()
	if cp := f.durable(); cp.Position != 12 || cp.LeaderEpoch != 3 {
		t.Errorf("after a restart: position %d in epoch %d, want 12 in 3", cp.Position, cp.LeaderEpoch)
	}
}

// Brokers that cannot tell of epochs are taken by their offsets; trouble is
// not.
func TestEpochsThatCannotBeAskedForAreNotHeld(t *testing.T) {
	f := newFollower(t)
	f.writeKeys(0, 100)
	f.restart()
	f.flush()
	for _, err := range []error{kafka.ErrUnsupported, kafka.ErrNotAuthorized} {
		f.k.change(func() { f.k.epochErr = fmt.Errorf("asking: %w", err) })
		f.restart()
		f.want(tenKeys(100), 100, Live)
		f.wantWarnings(0)
	}
	f.k.change(func() { f.k.epochErr = kafka.ErrClosed })
	f.open()
	b := f.bounds()
	if err := b.AskCut(t.Context(), f.k.Admin(), tp0, f.durable()); !errors.Is(err, kafka.ErrClosed) || !strings.Contains(err.Error(), "t/0") {
		t.Errorf("error %v", err)
	}
}

// The records of an own changelog are written, not read: nothing tells their
// epoch, so the flush asks.
func TestFlushAsksForTheEpochOfWhatWasWritten(t *testing.T) {
	for _, c := range []struct{ own, newest, want int32 }{{-1, 4, 4}, {-1, -1, -1}, {2, 4, 2}} {
		s, err := storage.Memory().Open()
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Table("t", 0)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		tab, err := NewTable(TableConfig{Store: st, Epoch: func() int32 { asked++; return c.newest }})
		if err != nil {
			t.Fatal(err)
		}
		tab.Set([]byte("k"), []byte("v"), 1)
		tab.Commit(tab.Seal(), storage.Checkpoint{Position: 1, LeaderEpoch: c.own})
		if err := tab.FlushNow(); err != nil {
			t.Fatal(err)
		}
		cp, ok, err := st.Checkpoint()
		if err != nil || !ok || cp.Position != 1 || cp.LeaderEpoch != c.want {
			t.Errorf("checkpoint %+v, %v, %v, want epoch %d", cp, ok, err, c.want)
		}
		if want := map[bool]int{true: 1}[c.own < 0]; asked != want {
			t.Errorf("asked %d times, want %d", asked, want)
		}
	}
}

// A checkpoint of what was written may tell a later epoch than its records
// have: what is lost before that was the leader's is found all the same.
func TestLaterEpochThanThatOfTheRecordsFindsTheCut(t *testing.T) {
	for _, c := range []struct {
		cut      int64
		warnings int
	}{{100, 0}, {99, 1}, {40, 1}} {
		f := newFollower(t)
		f.writeKeys(0, 100)
		f.k.cut("t", 0, 100) // an ordinary election
		f.restart()
		cp := f.rep.Checkpoint()
		cp.LeaderEpoch = NewEpochs(f.k).Newest(tp0)
		f.rep.t.Advance(cp)
		f.flush()
		if cp.LeaderEpoch != 2 {
			t.Fatalf("newest epoch %d", cp.LeaderEpoch)
		}
		f.k.cut("t", 0, c.cut)
		f.writeKeys(int(c.cut), 130)
		f.restart()
		f.want(tenKeys(130), 130, Live)
		f.wantWarnings(c.warnings)
	}
}

func TestProgressOfALogThatBeginsFarAboveZero(t *testing.T) {
	f := newFollower(t)
	f.writeKeys(0, 2386)
	f.k.change(func() { // as if there had been 17,091 records before
		l := f.k.log("t", 0)
		for i := range l.records {
			l.records[i].Offset += 17091
		}
		l.start, l.end = 17091, 19477
	})
	f.start()
	for more := true; more; more = f.step() {
		p := f.rep.Progress()
		if p.Remaining() > 2386 || p.Lag() > 2386 || p.Position < 17091 {
			t.Fatalf("position %d: %d remaining, lag %d", p.Position, p.Remaining(), p.Lag())
		}
	}
	p := f.rep.Progress()
	if f.want(tenKeys(2386), 19477, Live); p.Restored != 2386 || p.Remaining() != 0 || p.Lag() != 0 {
		t.Errorf("progress %+v", p)
	}
	size := int64(0)
	for k, v := range tenKeys(2386) {
		size += int64(len(k) + len(v))
	}
	if p.RestoredBytes != size || p.Bytes != size {
		t.Errorf("%d bytes restored, %d read, want %d", p.RestoredBytes, p.Bytes, size)
	}
}

// The brokers tell it of a log that is being followed; a replica is built anew
// from what is there now.
func TestLogCutUnderARunningReplicaRebuilds(t *testing.T) {
	f := newFollower(t)
	f.writeKeys(0, 100)
	f.start()
	f.catchUp()
	f.k.cut("t", 0, 40)
	f.writeKeys(40, 120)
	err := &kafka.TruncatedError{End: 40, OffsetOutOfRangeError: kafka.OffsetOutOfRangeError{
		TopicPartition: tp0, Position: 100, LogStart: 0, HighWatermark: 120}}
	again, failed := f.rep.Apply(&kafka.Batch{TopicPartition: tp0, Position: 100, LeaderEpoch: -1, LastStable: 120, HighWatermark: 120, Err: err})
	if !again || failed != nil {
		t.Fatalf("again %t, error %v", again, failed)
	}
	if f.rep.Position() != 0 || f.rep.State() != Restoring || len(f.rows()) != 0 {
		t.Errorf("position %d, state %d, %d rows", f.rep.Position(), f.rep.State(), len(f.rows()))
	}
	f.first = true
	f.catchUp()
	f.want(tenKeys(120), 120, Live)
	f.wantWarnings(1)
}

func TestMirrorOfALogThatWasCutMeanwhileIsBuiltAnew(t *testing.T) {
	for _, running := range []bool{false, true} {
		inBubble(t, 1, func(x *mirrorTest) {
			x.fill(10)
			x.start()
			x.ready()
			if running {
				x.k.setDown(true)
				time.Sleep(time.Second)
			} else {
				x.stop()
			}
			x.k.cut("t", 0, 4)
			for i := range 10 {
				x.k.put("t", fmt.Sprintf("new%d", i), "1")
			}
			if running {
				x.k.setDown(false)
			} else {
				x.start()
				x.ready()
			}
			x.eventuallyGet("new9", "1")
			if n := len(x.keys(storage.Range{})); n != 14 {
				t.Errorf("running %t: %d rows, want 14", running, n)
			}
			if p := x.Stats()[0]; p.Rebuilds != 1 {
				t.Errorf("running %t: %d rebuilds", running, p.Rebuilds)
			}
		})
	}
}

// Trouble while epochs are asked for is trouble of the network.
func TestMirrorAsksForEpochsUntilItIsAnswered(t *testing.T) {
	inBubble(t, 2, func(x *mirrorTest) {
		x.fill(10)
		x.start()
		x.ready()
		x.stop()
		x.k.change(func() { x.k.epochErr = errors.New("no answer") })
		x.start()
		time.Sleep(time.Minute)
		if x.Ready() {
			t.Error("ready, and nobody knows whether the log is the same")
		}
		x.k.change(func() { x.k.epochErr = nil })
		x.ready()
		x.wantGet("k007", "7")
		if p := x.Stats()[0]; p.Rebuilds != 0 || p.Rows != 0 {
			t.Errorf("%d rebuilds, %d rows read again", p.Rebuilds, p.Rows)
		}
	})
}

// Flushes wait for the answer, so silence costs one of them a moment, and
// the others nothing.
func TestEpochsAreNotAskedForWhileTheBrokersAreSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka()
		k.create("t", 1)
		e := NewEpochs(k)
		if got := e.Newest(tp0); got != 1 {
			t.Fatalf("epoch %d", got)
		}
		k.setDown(true)
		began := time.Now()
		for range 100 {
			if got := e.Newest(tp0); got != -1 {
				t.Fatalf("epoch %d of brokers that are away", got)
			}
		}
		if took := time.Since(began); took != epochPatience {
			t.Errorf("100 questions took %s, want %s", took, epochPatience)
		}
		k.setDown(false)
		time.Sleep(epochSilence)
		if got := e.Newest(tp0); got != 1 {
			t.Errorf("epoch %d of brokers that are back", got)
		}
		var none *Epochs
		b := Bounds{}
		if none.Newest(tp0) != -1 || none.Cut(t.Context(), &b, tp0, storage.Checkpoint{LeaderEpoch: 3}) != nil || b.unsound(7, Target{}) == "" {
			t.Error("nobody to ask, and something is known")
		}
	})
}
