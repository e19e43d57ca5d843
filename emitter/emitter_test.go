package emitter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

func TestNewNamesWhatIsWrong(t *testing.T) {
	c := clientOf(t, newFakeDriver(1))
	cases := []struct {
		topic reka.Topic[int64]
		opts  []Option
		want  string
	}{
		{reka.Stream[int64]{}, nil, "no topic"},
		{reka.NewStream[int64]("clicks", nil), nil, "topic clicks has no codec"},
		{clicks, []Option{nil}, "nil option"},
		{clicks, []Option{WithBuffer(0, 1)}, "WithBuffer(0, 1)"},
		{clicks, []Option{WithLinger(-1)}, "WithLinger"},
		{clicks, []Option{WithDeliveryTimeout(0)}, "WithDeliveryTimeout"},
		{clicks, []Option{WithStopTimeout(0)}, "WithStopTimeout"},
		{clicks, []Option{WithRefresh(0)}, "WithRefresh"},
		{clicks, []Option{WithCompression(9)}, "WithCompression(9)"},
	}
	for _, x := range cases {
		if _, err := New(c, x.topic, x.opts...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("New: %v, want an error with %q", err, x.want)
		}
	}
	if _, err := New(nil, clicks); err == nil {
		t.Error("New without a client succeeds")
	}
}

func TestNewNeitherDialsNorStartsAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		d := newFakeDriver(1)
		newEmitter(t, d)
		if d.lookups+d.producers > 0 {
			t.Error("New asked the broker")
		}
	})
}

func TestReceiptTellsWhereAndWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(3)
		e := newEmitter(t, d)
		defer closeNow(e)
		at := time.UnixMilli(1_700_000_000_123)
		for i := range 2 {
			got, err := e.EmitSync(t.Context(), "alice", int64(i), reka.At(at), reka.ToPartition(2))
			want := Receipt{Topic: "clicks", Partition: 2, Offset: int64(i), Time: at}
			if err != nil || got != want {
				t.Errorf("receipt %+v, %v, want %+v", got, err, want)
			}
		}
	})
}

func TestTimestampIsNowByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmitter(t, newFakeDriver(1))
		defer closeNow(e)
		now := time.Now()
		time.Sleep(time.Hour)
		got, err := e.EmitSync(t.Context(), "alice", 1)
		if want := now.Add(time.Hour).Truncate(time.Millisecond); err != nil || !got.Time.Equal(want) {
			t.Errorf("time %v, %v, want %v", got.Time, err, want)
		}
	})
}

func TestKeysGoWhereThePartitionerSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(5)
		e := newEmitter(t, d)
		defer closeNow(e)
		// The first of them come before the partition count is known.
		for round := range 2 {
			for _, key := range []string{"alice", "bob", "", "a rather long key that is more than a word"} {
				got, err := e.EmitSync(t.Context(), key, 1)
				if want := kafka.Murmur2().Partition([]byte(key), 5); err != nil || got.Partition != want {
					t.Errorf("round %d, key %q: partition %d, %v, want %d", round, key, got.Partition, err, want)
				}
			}
		}
	})
}

func TestRecordsWithoutKeyTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(3)
		e := newEmitter(t, d)
		for i := range 9 {
			mustEmit(t, e, "", int64(i), reka.NullKey())
		}
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for p := range int32(3) {
			if n := len(d.logs[p]); n != 3 {
				t.Errorf("partition %d has %d records, want 3", p, n)
			}
			for _, r := range d.logs[p] {
				if r.Key != nil {
					t.Errorf("key %q, want none", r.Key)
				}
			}
		}
	})
}

func TestNullAndEmptyStayApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		e, err := New(clientOf(t, d), reka.NewTable("rows", raw{}))
		if err != nil {
			t.Fatal(err)
		}
		_, err1 := e.Emit(t.Context(), "", nil)
		_, err2 := e.Delete(t.Context(), "")
		_, err3 := e.Emit(t.Context(), "", []byte{}, reka.NullKey())
		if err := errors.Join(err1, err2, err3, e.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		l := d.logs[0]
		if len(l) != 3 || l[0].Key == nil || l[0].Value == nil || l[1].Key == nil || l[1].Value != nil ||
			l[2].Key != nil || l[2].Value == nil {
			t.Errorf("log %+v, want an empty value, a delete, and a record without key", l)
		}
	})
}

func TestHeadersOfTheRecordFollowTheDefaultOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		e := newEmitter(t, d, WithHeader("service", []byte("shop")), WithHeader("empty", nil))
		mustEmit(t, e, "alice", 1)
		mustEmit(t, e, "alice", 2, reka.WithHeader("trace", []byte("17")))
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range d.logs[0] {
			for _, h := range r.Headers {
				got = append(got, h.Key+"="+string(h.Value))
			}
		}
		if s := strings.Join(got, " "); s != "service=shop empty= service=shop empty= trace=17" {
			t.Errorf("headers %s", s)
		}
	})
}

func TestValueMayChangeAfterEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		e, err := New(clientOf(t, d), reka.NewStream("bytes", raw{}))
		if err != nil {
			t.Fatal(err)
		}
		v := []byte("before")
		if _, err := e.Emit(t.Context(), "k", v); err != nil {
			t.Fatal(err)
		}
		copy(v, "after!")
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := string(d.logs[0][0].Value); got != "before" {
			t.Errorf("value %q", got)
		}
	})
}

func TestCodecErrorNamesTopicAndKey(t *testing.T) {
	cause := errors.New("no such number")
	e, err := New(clientOf(t, newFakeDriver(1)), reka.NewStream("clicks", text{fail: cause}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Emit(t.Context(), "alice", 1)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), `clicks key "alice"`) {
		t.Errorf("Emit: %v", err)
	}
}

func TestBadOptionsAreRefusedByEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(2)
		e := newEmitter(t, d)
		defer closeNow(e)
		for _, o := range []reka.EmitOption{reka.NullKey(), reka.ToPartition(-2), reka.At(time.UnixMilli(-1))} {
			if _, err := e.Emit(t.Context(), "alice", 1, o); err == nil {
				t.Errorf("option %+v is accepted", o)
			}
		}
		// The first one learns it late, when the partitions are known.
		for range 2 {
			_, err := e.EmitSync(t.Context(), "alice", 1, reka.ToPartition(2))
			if !errors.Is(err, kafka.ErrUnknownTopic) || !strings.Contains(err.Error(), "clicks/2") {
				t.Errorf("partition 2 of 2: %v", err)
			}
		}
	})
}

func TestEmitHeedsAContextThatHasEnded(t *testing.T) {
	e := newEmitter(t, newFakeDriver(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Emit(ctx, "alice", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Emit: %v", err)
	}
}

func TestThenIsCalledOnceWithTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDriver(1)
		e := newEmitter(t, d)
		r := mustEmit(t, e, "alice", 1)
		var before, after []Receipt
		r.Then(func(x Receipt, err error) { before = append(before, x) })
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Then(func(x Receipt, err error) { after = append(after, x) })
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(before) != 1 || len(after) != 1 || before[0] != after[0] || before[0].Topic != "clicks" {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
}
