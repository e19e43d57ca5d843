package tester

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

// txnRig is a process with a transactor.
type txnRig struct {
	kafka.Transactor
	tt    *Tester
	inc   *incarnation
	fates []error // of all runs
}

func newTxnRig(tt *Tester, instance string) *txnRig {
	tt.tb.Helper()
	x := &txnRig{tt: tt, inc: tt.w.newIncarnation(instance, 1)}
	var err error
	if x.Transactor, err = x.inc.NewTransactor(kafka.TransactorConfig{ID: "id"}); err != nil {
		tt.tb.Fatal(err)
	}
	return x
}

func (x *txnRig) init(t *testing.T, own bool) {
	t.Helper()
	if err := x.Init(context.Background(), own); err != nil {
		t.Fatal(err)
	}
}

func (x *txnRig) end(t *testing.T, commit bool) {
	t.Helper()
	if err := x.End(context.Background(), commit); err != nil {
		t.Fatal(err)
	}
}

// produce writes records given as key=value to partition 0.
func (x *txnRig) produce(topic string, pairs ...string) {
	var rs []kafka.Record
	for _, p := range pairs {
		k, v, _ := strings.Cut(p, "=")
		rs = append(rs, kafka.Record{Key: []byte(k), Value: []byte(v), Timestamp: -1})
	}
	x.Produce(kafka.Outgoing{TopicPartition: kafka.TopicPartition{Topic: topic}, Records: rs,
		Done: func(r kafka.Run) { x.fates = append(x.fates, r.Err) }})
}

// whileTimeRuns makes calls between which time passes whenever they wait.
func (x *txnRig) whileTimeRuns(calls func()) {
	w := x.tt.w
	x.inc.work.Add(1)
	w.move(x.tt.Now().Add(24 * time.Hour))
	calls()
	w.mu.Lock()
	w.advance = nil
	w.mu.Unlock()
	x.inc.work.Add(-1)
}

// offset makes a position of group g in t/0 part of the transaction.
func (x *txnRig) offset(next int64) error {
	return x.Offsets(context.Background(), kafka.Committer{Group: "g", Generation: -1},
		[]kafka.CommittedOffset{{TopicPartition: kafka.TopicPartition{Topic: "t"}, Offset: next, LeaderEpoch: -1}})
}

func stableOffset(tt *Tester) int64 {
	tt.Settle()
	tt.w.mu.Lock()
	defer tt.w.mu.Unlock()
	_, l := tt.w.log(kafka.TopicPartition{Topic: "t"})
	return l.stable()
}

// Whatever the last request of a process was, its transaction takes effect as
// a whole or not at all, and its successor decides which.
func TestCrashAtEveryRequestOfATransaction(t *testing.T) {
	for _, op := range []Op{OpInitProducer, OpAddPartitions, OpProduce, OpAddOffsets, OpTxnOffsets, OpEndTxn} {
		for name, act := range map[string]Action{"before": CrashBefore, "within": CrashWithin, "after": CrashAfter} {
			t.Run(fmt.Sprintf("%s %s", op, name), func(t *testing.T) {
				tt := New(t)
				tt.CreateTopic("t", 1)
				tt.Fail(Fault{Op: op, Transaction: "id", Instance: "app", Do: act})
				x := newTxnRig(tt, "app")
				_ = x.Init(context.Background(), false) // the crash shows below
				x.Begin()
				x.produce("t", "a=1", "b=2")
				_ = x.offset(5)
				err := x.End(context.Background(), true)
				if !x.inc.isDead() || !errors.Is(err, kafka.ErrClosed) {
					t.Fatalf("dead %t, end: %v", x.inc.isDead(), err)
				}
				newTxnRig(tt, "next").init(t, false)
				records, next, want := offsets(tt, "t"), tt.Committed("g", "t", 0), ""
				if op == OpEndTxn && name == "after" {
					want = "0:a=1 1:b=2"
				}
				if records != want || (next == 5) != (want != "") {
					t.Fatalf("records %q, committed %d", records, next)
				}
				if _, l := tt.w.log(kafka.TopicPartition{Topic: "t"}); l.stable() != l.end {
					t.Fatalf("stable up to %d of %d", l.stable(), l.end)
				}
			})
		}
	}
}

// A half-fenced id: the successor died between the request that aborts and
// the one that fences for good.
func TestFormerOwnerRevivesItselfUntilTheFenceIsRepeated(t *testing.T) {
	for _, repeated := range []bool{false, true} {
		tt := New(t)
		tt.CreateTopic("t", 1)
		first, second := newTxnRig(tt, "first"), newTxnRig(tt, "second")
		first.init(t, false)
		first.Begin()
		first.produce("t", "a=1")
		if !repeated {
			tt.Fail(Fault{Op: OpInitProducer, Instance: "second", Nth: 2, Do: CrashBefore})
		}
		err := second.Init(context.Background(), false)
		if repeated != (err == nil) {
			t.Fatalf("init: %v", err)
		}
		if err := first.End(context.Background(), true); !errors.Is(err, kafka.ErrFenced) {
			t.Fatalf("end: %v", err)
		}
		err = first.Init(context.Background(), true)
		if repeated != errors.Is(err, kafka.ErrFenced) || !repeated && err != nil {
			t.Fatalf("repeated %t: renewal: %v", repeated, err)
		}
	}
}

func TestLostAnswerOfAnEnd(t *testing.T) {
	gone := errors.New("gone")
	for name, act := range map[string]Action{"answer": ErrorAfter(gone), "request": Lost} {
		t.Run(name, func(t *testing.T) {
			tt := New(t)
			tt.CreateTopic("t", 1)
			x := newTxnRig(tt, "app")
			x.init(t, false)
			x.Begin()
			x.produce("t", "a=1")
			tt.Fail(Fault{Op: OpEndTxn, Do: act})
			ctx := context.Background()
			if err := x.End(ctx, true); !errors.Is(err, kafka.ErrOutcomeUnknown) || !x.InDoubt() {
				t.Fatalf("end: %v, in doubt %t", err, x.InDoubt())
			}
			if err := x.End(ctx, false); !errors.Is(err, kafka.ErrOutcomeUnknown) {
				t.Fatalf("the contrary end: %v", err)
			}
			x.end(t, true)
			if got := offsets(tt, "t"); got != "0:a=1" || !x.InDoubt() {
				t.Fatalf("left %s, in doubt %t", got, x.InDoubt())
			}
			x.init(t, true)
			if x.InDoubt() {
				t.Fatal("in doubt after a renewal")
			}
		})
	}
}

// This is why a renewal must follow an unanswered request.
func TestLateEndHitsTheNextTransactionUnlessTheEpochIsRenewed(t *testing.T) {
	for _, renewed := range []bool{false, true} {
		tt := New(t)
		tt.CreateTopic("t", 1)
		x := newTxnRig(tt, "app")
		x.init(t, false)
		x.Begin()
		x.produce("t", "a=1")
		tt.Fail(Fault{Op: OpEndTxn, Do: Late(time.Second)})
		if err := x.End(context.Background(), true); !errors.Is(err, kafka.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		x.end(t, true)
		if renewed {
			x.init(t, true)
		}
		x.Begin()
		x.produce("t", "b=2")
		tt.Advance(time.Second)
		if got := offsets(tt, "t"); (got == "0:a=1") != renewed {
			t.Fatalf("renewed %t: read %s of a transaction that nobody ended", renewed, got)
		}
	}
}

func TestLateProduceIsRefusedAfterARenewal(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1)
	x := newTxnRig(tt, "app")
	x.init(t, false)
	x.Begin()
	tt.Fail(Fault{Op: OpProduce, Do: Late(time.Second)})
	x.produce("t", "a=1")
	if !errors.Is(x.fates[0], kafka.ErrAbortable) || !x.InDoubt() {
		t.Fatalf("fate %v, in doubt %t", x.fates[0], x.InDoubt())
	}
	if err := x.End(context.Background(), true); !errors.Is(err, kafka.ErrAbortable) {
		t.Fatalf("commit: %v", err)
	}
	x.end(t, false)
	x.Begin()
	x.produce("t", "b=2")
	tt.Settle()
	if !errors.Is(x.fates[1], kafka.ErrAbortable) {
		t.Fatalf("a gap in the numbers was accepted: %v", x.fates[1])
	}
	x.end(t, false)
	x.init(t, true)
	x.Begin()
	x.produce("t", "c=3")
	tt.Advance(time.Second)
	x.end(t, true)
	if got := offsets(tt, "t"); !strings.HasSuffix(got, ":c=3") || strings.Contains(got, "a=1") {
		t.Fatalf("read %s", got)
	}
}

// A request that is on its way arrives, whatever becomes of its process.
func TestDelayedRequestOutlivesItsProcess(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1)
	x := newTxnRig(tt, "app")
	x.init(t, false)
	x.Begin()
	x.produce("t", "a=1")
	tt.Fail(Fault{Op: OpEndTxn, Do: Delay(time.Second)})
	ctx, cancel := context.WithCancel(context.Background())
	x.inc.Clock().AfterFunc(time.Millisecond, cancel)
	var err error
	x.whileTimeRuns(func() { err = x.End(ctx, true) })
	if !errors.Is(err, kafka.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) || !x.InDoubt() {
		t.Fatalf("end: %v, in doubt %t", err, x.InDoubt())
	}
	x.inc.kill()
	tt.Advance(time.Second)
	if got := offsets(tt, "t"); got != "0:a=1" {
		t.Fatalf("read %q", got)
	}
}

// An abort does not wait for ever for what was sent.
func TestAbortGivesUpWhatIsOnItsWay(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1)
	x := newTxnRig(tt, "app")
	x.init(t, false)
	x.Begin()
	tt.Fail(Fault{Op: OpProduce, Do: Delay(time.Hour)})
	x.produce("t", "a=1")
	x.produce("t", "b=2")
	before := tt.Now()
	x.whileTimeRuns(func() { x.end(t, false) })
	took := tt.Now().Sub(before)
	if len(x.fates) != 2 || !x.InDoubt() || took != abortGrace {
		t.Fatalf("fates %v, in doubt %t, took %s", x.fates, x.InDoubt(), took)
	}
}

// Markers are written one by one, and until the last one the next transaction
// waits.
func TestMarkersCanBeDelayed(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1)
	x := newTxnRig(tt, "app")
	x.init(t, false)
	x.Begin()
	x.produce("t", "a=1")
	if err := x.offset(5); err != nil {
		t.Fatal(err)
	}
	tt.Fail(Fault{Op: OpMarker, Topic: "t", Do: Delay(2 * time.Second)})
	tt.Fail(Fault{Op: OpMarker, Group: "g", Do: Delay(time.Second)})
	x.end(t, true)
	x.Begin()
	x.produce("t", "b=2")
	seen := func() string {
		return fmt.Sprintf("%d %d %q %d", tt.Committed("g", "t", 0), stableOffset(tt), offsets(tt, "t"), len(x.fates))
	}
	var got []string
	for range 3 {
		got = append(got, seen())
		tt.Advance(time.Second)
	}
	want := []string{`-1 0 "" 1`, `5 0 "" 1`, `5 2 "0:a=1" 2`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("saw %v, want %v", got, want)
	}
}

func TestTransactionTimeoutIsExact(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1)
	x := newTxnRig(tt, "app")
	x.init(t, false)
	tt.Advance(time.Hour) // before the first request nothing is open
	x.Begin()
	x.produce("t", "a=1")
	tt.Advance(defaultTransaction - 1)
	before := stableOffset(tt)
	tt.Advance(1)
	if after := stableOffset(tt); before != 0 || after != 2 {
		t.Fatalf("stable up to %d before and %d after the timeout", before, after)
	}
}

// A commit of a member that is newer than a pending offset stays.
func TestNewerCommitOutlivesAPendingOffset(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1)
	x := newTxnRig(tt, "app")
	x.init(t, false)
	x.Begin()
	if err := x.offset(5); err != nil {
		t.Fatal(err)
	}
	tt.w.mu.Lock()
	err := tt.w.group("g").commit(nil, "", -1, []kafka.CommittedOffset{{TopicPartition: kafka.TopicPartition{Topic: "t"}, Offset: 7}})
	tt.w.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	x.end(t, true)
	if n := tt.Committed("g", "t", 0); n != 7 {
		t.Fatalf("committed %d, want 7", n)
	}
}

func TestPausedProcessWritesWhenItGoesOn(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1)
	x := newTxnRig(tt, "app")
	inst := &Instance{t: tt, name: "app", inc: x.inc}
	x.init(t, false)
	x.Begin()
	inst.Pause()
	x.produce("t", "a=1")
	tt.Settle()
	if len(x.fates) != 0 {
		t.Fatal("a paused process wrote")
	}
	inst.Resume()
	x.end(t, true)
	if got := offsets(tt, "t"); got != "0:a=1" || len(x.fates) != 1 {
		t.Fatalf("read %q, fates %v", got, x.fates)
	}
}

// Handles of the test read committed records; what another partition had
// visible first does not hide what becomes visible later.
func TestOutputReadsCommittedRecords(t *testing.T) {
	tt := New(t)
	topic := reka.NewStream("t", text{})
	out := Output(tt, topic)
	x := newTxnRig(tt, "app")
	x.init(t, false)
	x.Begin()
	x.produce("t", "a=early")
	tt.SendRaw("t", 1, kafka.Record{Value: []byte("late"), Timestamp: -1})
	first, _ := out.Next()
	if _, more := out.Next(); more || first.Value != "late" {
		t.Fatalf("first %q, more %t", first.Value, more)
	}
	x.end(t, true)
	second, _ := out.Next()
	if _, more := out.Next(); more || second.Value != "early" {
		t.Fatalf("second %q, more %t", second.Value, more)
	}
	if got := fmt.Sprint(out.Values()); got != "[early late]" {
		t.Fatalf("values %s, want the order of writing", got)
	}
}
