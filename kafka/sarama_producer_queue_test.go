package kafka

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// ledger collects the runs of one Outgoing and checks that they come in order.
type ledger struct {
	t    *testing.T
	n    int
	next int
	runs []Run
}

func (l *ledger) done(r Run) {
	l.t.Helper()
	if r.From != l.next || r.To <= r.From || r.To > l.n {
		l.t.Fatalf("run [%d,%d) after %d of %d records", r.From, r.To, l.next, l.n)
	}
	l.next = r.To
	l.runs = append(l.runs, r)
}

func (l *ledger) complete() bool { return l.next == l.n }

func pushed(t *testing.T, q *produceQueue, n int, deadline time.Time) *ledger {
	l := &ledger{t: t, n: n}
	records := make([]Record, n)
	for i := range records {
		records[i] = Record{Key: fmt.Appendf(nil, "%d", i), Value: make([]byte, 100)}
	}
	q.push(Outgoing{TopicPartition: q.tp, Records: records, Done: l.done}, deadline)
	return l
}

func testQueue(limit int) *produceQueue {
	q := newProduceQueue(TopicPartition{Topic: "t"}, limit)
	q.seat = seat{id: 1}
	return q
}

func TestQueueCoalescesOutgoings(t *testing.T) {
	q := testQueue(1 << 20)
	a, b := pushed(t, q, 3, time.Time{}), pushed(t, q, 2, time.Time{})
	batch := q.next()
	if batch.count != 5 || q.next() != batch {
		t.Fatalf("batch of %d records, want one batch of 5 that stays", batch.count)
	}
	q.acked(40)
	if !a.complete() || !b.complete() || a.runs[0].Base != 40 || b.runs[0].Base != 43 {
		t.Fatalf("runs %+v and %+v", a.runs, b.runs)
	}
	if q.seat.seq != 5 || !q.empty() {
		t.Fatalf("sequence %d, empty %t", q.seat.seq, q.empty())
	}
}

func TestQueueCutsAnOutgoingAtTheLimit(t *testing.T) {
	q := testQueue(1000)
	l := pushed(t, q, 20, time.Time{})
	for base := int64(0); !q.empty(); {
		b := q.next()
		if b.bytes > 1000 && b.count > 1 {
			t.Fatalf("batch of %d bytes", b.bytes)
		}
		q.acked(base)
		base += int64(b.count)
	}
	if !l.complete() || len(l.runs) < 3 {
		t.Fatalf("runs %+v", l.runs)
	}
	for _, r := range l.runs {
		if r.Base != int64(r.From) || r.Err != nil {
			t.Fatalf("run %+v", r)
		}
	}
}

func TestQueueSendsAnOversizedRecordAlone(t *testing.T) {
	q := testQueue(50)
	pushed(t, q, 2, time.Time{})
	if n := q.next().count; n != 1 {
		t.Fatalf("%d records in a batch that has no room for one", n)
	}
}

func TestQueueFailsARecordThatCannotBeEncodedAlone(t *testing.T) {
	q := testQueue(1 << 20)
	l := &ledger{t: t, n: 4}
	records := make([]Record, 4)
	records[1].Timestamp = maxTimestamp + 1
	records[2].Timestamp = maxTimestamp
	q.push(Outgoing{Records: records, Done: l.done}, time.Time{})
	for !q.empty() {
		if q.next() != nil {
			q.acked(7)
		}
	}
	if !l.complete() || len(l.runs) != 3 || !errors.Is(l.runs[1].Err, ErrInvalidRecord) || l.runs[2].Err != nil {
		t.Fatalf("runs %+v", l.runs)
	}
	if q.seat.seq != 3 {
		t.Fatalf("sequence %d: a record that was not sent must not use one", q.seat.seq)
	}
}

func TestCutNarrowsARefusalDownToItsRecord(t *testing.T) {
	q := testQueue(1 << 20)
	const n, bad = 37, 23
	l := pushed(t, q, n, time.Time{})
	log, rounds := 0, 0
	for ; !q.empty(); rounds++ {
		b := q.next()
		holds := false
		for _, s := range b.spans {
			holds = holds || s.from <= bad && bad < s.from+len(s.records)
		}
		if holds {
			q.cut(ErrTooLarge, true)
			continue
		}
		if q.seat.seq != int32(log) {
			t.Fatalf("sequence %d for record %d of the log", q.seat.seq, log)
		}
		q.acked(int64(log))
		log += b.count
	}
	if !l.complete() || log != n-1 || rounds > 20 {
		t.Fatalf("%d in the log after %d rounds: %+v", log, rounds, l.runs)
	}
	for _, r := range l.runs {
		if (r.Err != nil) != (r.From == bad && r.To == bad+1) {
			t.Fatalf("run %+v", r)
		}
		var e *Error
		if r.Err != nil && (!errors.As(r.Err, &e) || string(e.Key) != "23" || !errors.Is(r.Err, ErrTooLarge)) {
			t.Fatalf("error %v", r.Err)
		}
	}
}

func TestCutShrinksLaterBatchesAndSuccessGrowsThemAgain(t *testing.T) {
	q := testQueue(1 << 20)
	pushed(t, q, 1000, time.Time{})
	bytes := q.next().bytes
	q.cut(ErrTooLarge, true)
	if q.limit != bytes/2 {
		t.Fatalf("limit %d after a batch of %d bytes", q.limit, bytes)
	}
	for range 1000 {
		pushed(t, q, 1, time.Time{})
		q.next()
		q.acked(0)
	}
	if q.limit != 1<<20 {
		t.Fatalf("limit %d", q.limit)
	}
}

func TestExpireLeavesABatchInDoubtAsItIs(t *testing.T) {
	at := time.Unix(100, 0)
	q := testQueue(1 << 20)
	a, b := pushed(t, q, 2, at), pushed(t, q, 3, at.Add(time.Second))
	batch := q.next()
	batch.doubt = true
	if q.expire(at) || !a.complete() || b.next != 0 {
		t.Fatalf("a %+v, b %+v", a.runs, b.runs)
	}
	if q.next() != batch || batch.count != 5 {
		t.Fatal("the batch must be repeated as it was")
	}
	if d := q.deadline(at); !d.Equal(at.Add(time.Second)) {
		t.Fatalf("next deadline %v", d)
	}
	q.acked(10)
	if !b.complete() || b.runs[0].Base != 12 || q.seat.seq != 5 {
		t.Fatalf("b %+v, sequence %d", b.runs, q.seat.seq)
	}
}

func TestExpireGivesUpABatchWhoseRecordsAllTimedOut(t *testing.T) {
	at := time.Unix(100, 0)
	for _, doubt := range []bool{true, false} {
		q := testQueue(400)
		l := pushed(t, q, 5, at)
		q.next().doubt = doubt
		if abandoned := q.expire(at); abandoned != doubt {
			t.Fatalf("doubt %t: abandoned %t", doubt, abandoned)
		}
		if !l.complete() || !q.empty() {
			t.Fatalf("runs %+v", l.runs)
		}
		for _, r := range l.runs {
			if !errors.Is(r.Err, ErrDeliveryTimeout) {
				t.Fatalf("run %+v", r)
			}
		}
	}
}

func TestExpireDropsRecordsFromABatchThatWasNeverOut(t *testing.T) {
	at := time.Unix(100, 0)
	q := testQueue(1 << 20)
	a, b := pushed(t, q, 2, at), pushed(t, q, 3, at.Add(time.Second))
	q.next().encoded = &sarama.RecordBatch{}
	q.expire(at)
	batch := q.next()
	if !a.complete() || b.next != 0 || batch.count != 3 || batch.encoded != nil {
		t.Fatalf("a %+v, b %+v, batch of %d", a.runs, b.runs, batch.count)
	}
}

func TestExpireWaitsForTheSender(t *testing.T) {
	at := time.Unix(100, 0)
	q := testQueue(400)
	l := pushed(t, q, 5, at)
	q.next().handed = true
	if q.expire(at) || l.next != 0 {
		t.Fatalf("runs %+v while a sender reads the records", l.runs)
	}
	if d := q.deadline(at); !d.After(at) {
		t.Fatalf("next look at %v", d)
	}
}

func TestFailAllReportsEverythingOnceInOrder(t *testing.T) {
	q := testQueue(500)
	a, b := pushed(t, q, 9, time.Time{}), pushed(t, q, 4, time.Time{})
	q.next()
	q.cut(ErrTooLarge, false)
	q.next()
	q.failAll(ErrClosed)
	if !a.complete() || !b.complete() || !q.empty() {
		t.Fatalf("a %+v, b %+v", a.runs, b.runs)
	}
}

func TestSeatWrapsAsBrokersCount(t *testing.T) {
	s := seat{seq: math.MaxInt32 - 1}
	if got := s.after(2).seq; got != 0 {
		t.Fatalf("sequence %d after the highest", got)
	}
	if got := s.after(5).seq; got != 3 {
		t.Fatalf("sequence %d", got)
	}
}

func TestRenewedSeatIsAboveAllOfItsID(t *testing.T) {
	for _, c := range []struct {
		from seat
		top  int16
		id   int64
		want seat
	}{
		{seat{id: 1, epoch: 0, seq: 9}, 0, 1, seat{id: 1, epoch: 1}},
		{seat{id: 1, epoch: 0, seq: 9}, 5, 1, seat{id: 1, epoch: 5}},
		{seat{id: 1, epoch: 0, seq: 9}, 5, 2, seat{id: 1, epoch: 1}},
		{seat{id: 1, epoch: math.MaxInt16 - 1, seq: 9}, 0, 1, seat{id: -1}},
	} {
		if got := c.from.renewed(c.top, c.id); got != c.want {
			t.Errorf("%+v top %d id %d: %+v, want %+v", c.from, c.top, c.id, got, c.want)
		}
	}
}

func TestJudgeKeepsDoubtApart(t *testing.T) {
	for code, want := range map[sarama.KError]struct {
		v     verdict
		doubt bool
	}{
		sarama.ErrNoError:                      {verdictAcked, false},
		sarama.ErrDuplicateSequenceNumber:      {verdictAcked, false},
		sarama.ErrNotLeaderForPartition:        {verdictLater, true},
		sarama.ErrRequestTimedOut:              {verdictLater, true},
		sarama.ErrNotEnoughReplicas:            {verdictLater, false},
		sarama.ErrNotEnoughReplicasAfterAppend: {verdictLater, true},
		sarama.ErrUnknownTopicOrPartition:      {verdictTopic, true},
		sarama.ErrOutOfOrderSequenceNumber:     {verdictRenew, false},
		sarama.ErrUnknownProducerID:            {verdictRenew, false},
		sarama.ErrInvalidProducerEpoch:         {verdictRenew, false},
		sarama.ErrMessageSizeTooLarge:          {verdictCut, false},
		sarama.ErrInvalidTimestamp:             {verdictCut, false},
		sarama.ErrTopicAuthorizationFailed:     {verdictRefused, false},
		sarama.ErrUnknown:                      {verdictRefused, true},
	} {
		if v, doubt := judge(code); v != want.v || doubt != want.doubt {
			t.Errorf("%v: verdict %d doubt %t, want %+v", code, v, doubt, want)
		}
	}
}

// brokerModel is one partition of a broker as far as sequences go.
type brokerModel struct {
	log    []string       // keys
	stored map[seat]int64 // offset of a batch by what it was numbered with
}

func (m *brokerModel) write(s seat, b *produceBatch) int64 {
	if base, ok := m.stored[s]; ok {
		return base
	}
	base := int64(len(m.log))
	m.stored[s] = base
	for _, span := range b.spans {
		for i := range span.records {
			m.log = append(m.log, string(span.records[i].Key))
		}
	}
	return base
}

// Whatever brokers and time do, every record is reported once, in order, and
// what is reported as written stands in the log where the run says, once.
func TestQueueAgainstAModelOfABroker(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		q, now := testQueue(2000), time.Unix(0, 0)
		broker := brokerModel{stored: map[seat]int64{}}
		var ledgers []*ledger
		for step := 0; step < 200 || !q.empty(); step++ {
			if step < 200 && r.IntN(3) == 0 {
				l := pushed(t, q, 1+r.IntN(40), now.Add(20*time.Second))
				records := q.pending[len(q.pending)-1].records
				for i := range records {
					records[i].Key = fmt.Appendf(nil, "%d/%d", len(ledgers), i)
				}
				ledgers = append(ledgers, l)
			}
			now = now.Add(time.Duration(r.IntN(3)) * time.Second)
			if q.expire(now) {
				q.seat = q.seat.renewed(0, q.seat.id)
			}
			if b := q.next(); b != nil {
				attempt(r, q, b, &broker)
			}
		}
		checkLedgers(t, ledgers, broker.log)
	}
}

// attempt sends a batch to a broker that may refuse it or lose the answer.
func attempt(r *rand.Rand, q *produceQueue, b *produceBatch, broker *brokerModel) {
	switch r.IntN(5) {
	case 0:
		if !b.doubt {
			q.cut(ErrTooLarge, true)
		}
	case 1:
		broker.write(q.seat, b)
		b.doubt = true
	case 2:
		b.doubt = true // the request was lost
	default:
		q.acked(broker.write(q.seat, b))
	}
}

func checkLedgers(t *testing.T, ledgers []*ledger, log []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, key := range log {
		if seen[key] {
			t.Fatalf("%s is in the log twice", key)
		}
		seen[key] = true
	}
	for n, l := range ledgers {
		if !l.complete() {
			t.Fatalf("outgoing %d reported up to %d of %d", n, l.next, l.n)
		}
		for _, run := range l.runs {
			for i := run.From; i < run.To && run.Err == nil; i++ {
				if at := log[run.Base+int64(i-run.From)]; at != fmt.Sprintf("%d/%d", n, i) {
					t.Fatalf("outgoing %d, run %+v: the log has %s there", n, run, at)
				}
			}
		}
	}
}

func TestAMissingTopicIsBelievedWhenItIsToldForLong(t *testing.T) {
	q, at := testQueue(1), time.Unix(100, 0)
	for range 5 {
		if q.believe(at) {
			t.Fatalf("believed after %s", at.Sub(time.Unix(100, 0)))
		}
		at = at.Add(unknownTopicPatience / 5)
	}
	if !q.believe(at) {
		t.Fatal("not believed after long enough")
	}
	q.believe(at)
	if q.believe(at.Add(time.Hour)) {
		t.Fatal("what was told an hour ago must not count")
	}
}
