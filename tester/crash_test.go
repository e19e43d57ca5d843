package tester

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

func TestStorageSurvivesACrash(t *testing.T) {
	tt := New(t)
	app := startToy(tt, "app")
	sendWords(tt, 0, 100)
	tt.Settle()
	app.Crash()
	if !app.Crashed() {
		t.Fatal("not crashed")
	}
	sendWords(tt, 100, 100)
	if n := sum(tt); n != 100 {
		t.Fatalf("a dead process counted: %d", n)
	}
	tt.Advance(time.Minute) // its session ends
	app.Restart()
	if n := sum(tt); n != 200 {
		t.Fatalf("counted %d after the restart", n)
	}
}

// A static member that is back within its session timeout needs no time to
// pass; a dynamic one waits for the session of its former life.
func TestStaticMemberTakesOverAtOnce(t *testing.T) {
	for _, instance := range []string{"", "one"} {
		t.Run("instance "+instance, func(t *testing.T) {
			tt := New(t)
			app := startToy(tt, "app", func(e *toy) { e.instance = instance })
			app.Crash()
			app.Restart()
			sendWords(tt, 0, 10)
			if n := sum(tt); (n == 10) != (instance != "") {
				t.Fatalf("counted %d before the session ended", n)
			}
			tt.Advance(11 * time.Second)
			if n := sum(tt); n != 10 {
				t.Fatalf("counted %d after the session ended", n)
			}
		})
	}
}

func TestAnotherInstanceTakesOverAfterTheSession(t *testing.T) {
	tt := New(t)
	a := startToy(tt, "a")
	startToy(tt, "b")
	a.Crash()
	sendWords(tt, 0, 100)
	tt.Advance(9 * time.Second)
	before := sum(tt)
	tt.Advance(2 * time.Second)
	if n := sum(tt); before == 100 || n != 100 {
		t.Fatalf("counted %d before the session ended and %d after", before, n)
	}
}

func TestPausedProcessIsExpelledAndComesBack(t *testing.T) {
	tt := New(t)
	var lost atomic.Int64
	a := startToy(tt, "a", func(e *toy) {
		e.lost = func(err error) {
			if errors.Is(err, kafka.ErrUnknownMember) {
				lost.Add(1)
			}
		}
	})
	startToy(tt, "b")
	a.Pause()
	sendWords(tt, 0, 100)
	tt.Advance(11 * time.Second)
	if n := sum(tt); n != 100 || lost.Load() != 0 {
		t.Fatalf("counted %d, %d losses told while paused", n, lost.Load())
	}
	a.Resume()
	sendWords(tt, 100, 100)
	// Until it learns what happened it is a zombie, and this engine counts
	// what comes to it.
	if n := sum(tt); n < 200 || lost.Load() != 1 {
		t.Fatalf("counted %d, %d losses", n, lost.Load())
	}
}

func TestShortPauseLosesNothing(t *testing.T) {
	tt := New(t)
	a := startToy(tt, "a", func(e *toy) { e.lost = func(err error) { t.Errorf("lost: %v", err) } })
	a.Pause()
	sendWords(tt, 0, 10)
	tt.Advance(5 * time.Second)
	if n := sum(tt); n != 0 {
		t.Fatalf("a paused process counted %d", n)
	}
	a.Resume()
	tt.Advance(time.Minute)
	if n := sum(tt); n != 10 {
		t.Fatalf("counted %d", n)
	}
}

func TestExpelAndRebalance(t *testing.T) {
	tt := New(t)
	var generations []int32
	app := startToy(tt, "app", func(e *toy) {
		e.assigned = func(a kafka.Assignment) { generations = append(generations, a.Generation) }
	})
	tt.Rebalance("toy")
	tt.Settle()
	tt.Expel("toy", app)
	tt.Settle()
	if got := fmt.Sprint(generations); got != "[1 2 0 4]" && got != "[1 2 0 3]" {
		t.Fatalf("generations %s: want two, a loss, and another", got)
	}
	sendWords(tt, 0, 10)
	if n := sum(tt); n != 10 {
		t.Fatalf("counted %d", n)
	}
}

// Every kind of call can be the last one of a process, before its effect,
// within it and after it; what is left works.
func TestCrashAtEveryCall(t *testing.T) {
	ops := []Op{OpProduce, OpFetch, OpJoin, OpSync, OpCommit, OpCommitted, OpTopics, OpOpenTable, OpApply, OpCreateTopics}
	for _, op := range ops {
		for name, act := range map[string]Action{"before": CrashBefore, "within": CrashWithin, "after": CrashAfter} {
			t.Run(fmt.Sprintf("%s %s", op, name), func(t *testing.T) {
				tt := New(t)
				tt.Fail(Fault{Op: op, Instance: "app", Do: act})
				app := startToy(tt, "app", func(e *toy) { e.instance = "one" })
				sendWords(tt, 0, 100)
				tt.Settle()
				if !app.Crashed() {
					t.Fatal("the fault was not met")
				}
				app.Restart()
				if n := sum(tt); n < 100 {
					t.Fatalf("counted %d of 100", n)
				}
			})
		}
	}
}

func TestCrashWithinHasHalfOfItsEffect(t *testing.T) {
	tt := New(t)
	topic := reka.NewStream("half", text{})
	Input(tt, topic)
	tt.Fail(Fault{Op: OpProduce, Topic: "half", Do: CrashWithin})
	tt.Fail(Fault{Op: OpApply, Instance: "store", Do: CrashWithin})
	p := tt.w.newIncarnation("producer", 1)
	producer, err := p.NewProducer(kafka.ProducerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	producer.Produce(kafka.Outgoing{TopicPartition: kafka.TopicPartition{Topic: "half"}, Records: make([]kafka.Record, 10),
		Done: func(r kafka.Run) { failed = r.Err }})
	if n := len(tt.Raw("half", 0)); n != 5 || !errors.Is(failed, kafka.ErrClosed) {
		t.Fatalf("%d records, %v", n, failed)
	}
	inner := storage.Memory()
	s := tt.w.newIncarnation("store", 1)
	table := openTable(t, guardBuilder{s, inner})
	err = table.Apply([]storage.Row{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("b"), Value: []byte("2")}}, &storage.Checkpoint{Position: 2})
	if !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("apply: %v", err)
	}
	if _, _, err := table.Get(nil, []byte("a")); !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("get in a dead process: %v", err)
	}
	s.reap()
	table = openTable(t, inner)
	_, a, _ := table.Get(nil, []byte("a"))
	_, b, _ := table.Get(nil, []byte("b"))
	_, cp, _ := table.Checkpoint()
	if !a || b || cp {
		t.Fatalf("first row %t, second %t, checkpoint %t: want half", a, b, cp)
	}
}

func openTable(t *testing.T, b storage.Builder) storage.Table {
	t.Helper()
	s, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	table, err := s.Table("t", 0)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestFaultsAreMetWhereTheyAreAskedFor(t *testing.T) {
	tt := New(t)
	topic := reka.NewStream("x", text{})
	Input(tt, topic)
	refused := errors.New("refused")
	one := int32(1)
	tt.Fail(Fault{Op: OpProduce, Topic: "x", Partition: &one, Nth: 2, Times: 2, Do: Error(refused)})
	var calls []Call
	tt.Hook(func(c Call) Action { calls = append(calls, c); return Proceed })
	producer, err := tt.Client().Driver().NewProducer(kafka.ProducerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range 10 {
		producer.Produce(kafka.Outgoing{TopicPartition: kafka.TopicPartition{Topic: "x", Partition: int32(i % 2)},
			Records: []kafka.Record{{Value: []byte{byte(i)}}}, Done: func(r kafka.Run) { got = append(got, fmt.Sprint(r.Err)) }})
	}
	want := "<nil> <nil> <nil> refused <nil> refused <nil> <nil> <nil> <nil>"
	if s := strings.Join(got, " "); s != want {
		t.Fatalf("fates %s, want %s", s, want)
	}
	if len(calls) != 8 || calls[0].Instance != "test" || tt.Calls()[OpProduce] != 10 {
		t.Fatalf("the hook saw %d calls, counted %v", len(calls), tt.Calls())
	}
}

func TestDelayKeepsTheOrderOfItsPartition(t *testing.T) {
	tt := New(t)
	out := Output(tt, reka.NewStream("x", text{}))
	tt.Fail(Fault{Op: OpProduce, Nth: 2, Do: Delay(time.Second)})
	producer, err := tt.Client().Driver().NewProducer(kafka.ProducerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"a", "b", "c"} {
		producer.Produce(kafka.Outgoing{TopicPartition: kafka.TopicPartition{Topic: "x"}, Records: []kafka.Record{{Value: []byte(v)}}, Done: func(kafka.Run) {}})
	}
	if got := fmt.Sprint(out.Values()); got != "[a]" {
		t.Fatalf("values %s before the delay is over", got)
	}
	tt.Advance(time.Second)
	if got := fmt.Sprint(out.Values()); got != "[a b c]" {
		t.Fatalf("values %s", got)
	}
}

func TestDelayedDeliveryComesLater(t *testing.T) {
	tt := New(t)
	startToy(tt, "app")
	tt.Fail(Fault{Op: OpFetch, Topic: "words", Do: Delay(time.Second)})
	Input(tt, words).Send("a", "b")
	if n := sum(tt); n != 0 {
		t.Fatalf("counted %d", n)
	}
	tt.Advance(time.Second)
	if n := sum(tt); n != 1 {
		t.Fatalf("counted %d after the delay", n)
	}
}

func TestDeliveryTimeout(t *testing.T) {
	tt := New(t)
	Output(tt, reka.NewStream("x", text{}))
	tt.Fail(Fault{Op: OpProduce, Do: Delay(time.Hour)})
	producer, err := tt.Client().Driver().NewProducer(kafka.ProducerConfig{DeliveryTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var fates []error
	for range 2 {
		producer.Produce(kafka.Outgoing{TopicPartition: kafka.TopicPartition{Topic: "x"}, Records: make([]kafka.Record, 1),
			Done: func(r kafka.Run) { fates = append(fates, r.Err) }})
	}
	tt.Advance(time.Minute)
	if len(fates) != 2 || !errors.Is(fates[0], kafka.ErrDeliveryTimeout) || fates[1] != nil {
		t.Fatalf("fates %v", fates)
	}
}
