package task

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/kafka"
)

// errNoTimestamp: a record without a timestamp on an input that does not say
// what to do with it.
var errNoTimestamp = errors.New("record has no timestamp (WallTime gives it the clock's)")

// DecodeError is a failure of the decode phase: the record's bytes are not
// what the input's codec expects.
type DecodeError struct{ Err error }

// Error returns the cause.
func (e *DecodeError) Error() string { return "decode: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// PanicError is a panic of user code. The stack is not part of its text: it
// is logged, and is here for whoever wants it.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the panic's value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// DefaultRetry is how AsRetry repeats where the policy does not say.
var DefaultRetry = graph.Policy{Attempts: 5, Backoff: 100 * time.Millisecond, Max: 10 * time.Second}

// SteerError is an error of a callback that says itself what shall become of
// its record. Retry repeats by the policy's own terms, or by DefaultRetry.
type SteerError struct {
	Err    error
	Action graph.Action
	Retry  bool
}

// Error returns the cause.
func (e *SteerError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SteerError) Unwrap() error { return e.Err }

// failure is a record that failed.
type failure struct {
	in     *input
	record *kafka.Record
	tries  int // that failed before
	err    error
}

// outcome is what becomes of a record that failed.
type outcome int8

const (
	repeated outcome = iota // after a while
	passed                  // passed over
	unread                  // passed over, and says nothing about time
	fatal                   // the task has failed with it
)

// recordFailed decides what becomes of the head of in. It reports true if
// the record is finished.
func (t *Task) recordFailed(in *input, r *kafka.Record, err error) bool {
	switch what, wait := t.judge(failure{in: in, record: r, tries: t.tries, err: err}); what {
	case repeated:
		if t.timed {
			t.takeBack() // it may turn out to say nothing about time
		}
		t.tries++
		t.retrying = t.env.Clock.AfterFunc(wait, func() { t.box.Put(message{kind: msgRetry}) })
		return false
	case passed:
		t.finished(in, r.Timestamp)
	case unread:
		if t.timed {
			t.takeBack()
		}
		t.finished(in, noTime)
	case fatal:
		return false
	}
	return true
}

// judge applies the error policy to a record that failed.
func (t *Task) judge(f failure) (what outcome, wait time.Duration) {
	in, r, err := f.in, f.record, f.err
	phase, policy := "process", t.env.Graph.OnProcess
	if _, ok := errors.AsType[*DecodeError](err); ok {
		phase, policy = "decode", t.env.Graph.OnDecode
	}
	if steer, ok := errors.AsType[*SteerError](err); ok {
		if policy = t.steered(policy, steer); policy.Action == graph.DeadLetter && policy.Topic == "" {
			policy.Action = graph.Fail
			err = fmt.Errorf("no dead-letter topic is declared: %w", err)
		}
	}
	if _, ok := errors.AsType[*StoreError](err); ok || errors.Is(err, ErrInactive) {
		policy = graph.Policy{}
	}
	place := &kafka.Error{TopicPartition: in.TopicPartition, Offset: r.Offset, Key: r.Key, Err: fmt.Errorf("%s: %w", phase, err)}
	if f.tries < policy.Attempts {
		t.count.retries++
		t.note("record failed, will be tried again", place)
		return repeated, policy.Wait(f.tries + 1)
	}
	switch policy.Action {
	case graph.Skip:
		t.count.skipped++
		t.note("record skipped", place)
	case graph.DeadLetter:
		if !t.deadLetter(policy.Topic, deadLetter{in: in, record: r, phase: phase, err: err}) {
			return fatal, 0
		}
		t.count.deadLetters++
		t.note("record sent to the dead-letter topic", place)
	default:
		t.fail(place)
		return fatal, 0
	}
	if phase == "decode" {
		return unread, 0
	}
	return passed, 0
}

// steered is the policy as a callback's error changes it.
func (t *Task) steered(p graph.Policy, s *SteerError) graph.Policy {
	if s.Retry {
		if p.Attempts == 0 {
			p.Attempts, p.Backoff, p.Max = DefaultRetry.Attempts, DefaultRetry.Backoff, DefaultRetry.Max
		}
		return p
	}
	topic := p.Topic
	if topic == "" {
		topic = t.env.Graph.DeadLetterTopic()
	}
	p = graph.Policy{Action: s.Action}
	if s.Action == graph.DeadLetter {
		p.Topic = topic
	}
	return p
}

// deadLetter is a record on its way to a dead-letter topic.
type deadLetter struct {
	in     *input // nil: an output that was refused
	record *kafka.Record
	place  kafka.TopicPartition // of a refused output
	phase  string
	err    error
}

// Headers of records in dead-letter topics.
const (
	HeaderTopic     = "reka-topic"
	HeaderPartition = "reka-partition"
	HeaderOffset    = "reka-offset"
	HeaderPhase     = "reka-phase"
	HeaderError     = "reka-error"
)

// deadLetterError bounds the text of the cause, in bytes.
const deadLetterError = 2048

// deadLetter writes a failed record, as it was, to a topic, as part of the
// active epoch. It reports false, and fails the task, if that cannot be.
func (t *Task) deadLetter(topic string, d deadLetter) bool {
	place, offset := d.place, int64(-1)
	if d.in != nil {
		place, offset = d.in.TopicPartition, d.record.Offset
	}
	cause := d.err.Error()
	headers := append([]kafka.Header(nil), d.record.Headers...)
	headers = append(headers,
		kafka.Header{Key: HeaderTopic, Value: []byte(place.Topic)},
		kafka.Header{Key: HeaderPartition, Value: strconv.AppendInt(nil, int64(place.Partition), 10)},
		kafka.Header{Key: HeaderOffset, Value: strconv.AppendInt(nil, offset, 10)},
		kafka.Header{Key: HeaderPhase, Value: []byte(d.phase)},
		kafka.Header{Key: HeaderError, Value: []byte(cause[:min(len(cause), deadLetterError)])})
	time := d.record.Timestamp
	if time < 0 {
		time = t.env.Clock.Now().UnixMilli()
	}
	t.rec.begin(d.in, d.record, time)
	t.rec.Emit(t.env.target(topic), Emission{Key: d.record.Key, Value: d.record.Value, Headers: headers, Time: time, Partition: -1})
	if err := t.rec.err; err != nil {
		t.rec.void()
		t.fail(&kafka.Error{TopicPartition: place, Offset: offset, Key: d.record.Key,
			Err: fmt.Errorf("%s: %w (and it cannot be written to dead-letter topic %s: %w)", d.phase, d.err, topic, err)})
		return false
	}
	t.rec.keep()
	return true
}

// target returns the index of a topic in Outputs.
func (e *Env) target(topic string) int {
	for i := range e.Outputs {
		if e.Outputs[i].Topic == topic {
			return i
		}
	}
	return -1 // not reached: the processor lists every topic of the graph
}

// outputsRefused decides about outputs that the broker refused for good: the
// epoch goes on with dead letters in their place, or is lost.
func (t *Task) outputsRefused(e *epoch, refusals []*refusal) {
	defer e.answered(refusals)
	if t.replaceOutputs(e, refusals) {
		return
	}
	e.lost.Store(true)
	if t.dropped.Load() {
		return
	}
	r := refusals[0]
	first, from := kafka.TopicPartition{Partition: t.partition}, r.origins()[0]
	if from.input >= 0 {
		first = t.inputs[from.input].TopicPartition
	}
	cause := &kafka.Error{TopicPartition: r.slab.target, Offset: -1, Key: r.records()[0].Key, Err: fmt.Errorf("output refused: %w", r.err)}
	t.fail(&kafka.Error{TopicPartition: first, Offset: from.offset, Err: fmt.Errorf("produce: %w", cause)})
}

// replaceOutputs writes refused outputs to the dead-letter topic, as part of
// the epoch that they belong to. It reports false if the policy, or the state
// of the task, does not allow it.
func (t *Task) replaceOutputs(e *epoch, refusals []*refusal) bool {
	policy := t.env.Graph.OnProduce
	if policy.Action != graph.DeadLetter || t.failed != nil || t.dropped.Load() {
		return false
	}
	// What later records have emitted stays out of this epoch.
	gathered := t.outboxes
	t.outboxes = newOutboxes(t.env)
	defer func() { t.outboxes = gathered }()
	for _, r := range refusals {
		if policy.Topic == r.slab.target.Topic || errors.Is(r.err, kafka.ErrClosed) {
			return false
		}
		for i, rec := range r.records() {
			if !t.deadLetter(policy.Topic, deadLetter{record: &rec, place: r.slab.target, phase: "produce", err: r.err}) {
				return false
			}
			t.rec.emitted[0].retrace(r.origins()[i])
			t.count.deadLetters++
		}
	}
	if !t.env.HoldOutputs {
		t.sendAs(e)
		return true
	}
	for _, r := range slices.Backward(refusals) { // runs of one slab come in order
		r.slab.remove(r.from, r.to)
	}
	e.outputs = slices.DeleteFunc(e.outputs, func(s *slab) bool { return len(s.records) == 0 })
	t.holdOutputs(e)
	return true
}

// answered counts refused outputs as dealt with: the epoch goes, back, to the
// lane.
func (e *epoch) answered(refusals []*refusal) {
	if e.task.env.HoldOutputs {
		e.task.env.Lane.ready(e)
		return
	}
	for _, r := range refusals {
		e.acked(r.to - r.from)
	}
}

// misuse reports a record that was used outside its callback.
func (t *Task) misuse(err error) {
	t.env.Event(Event{Task: t, Kind: Failed, Err: fmt.Errorf("task %d: record %w", t.partition, err)})
}

// note logs a failed record: the first ones each, later ones thinned out.
func (t *Task) note(what string, err error) {
	if t.mayNote() {
		t.env.Log.Warn(what, zap.String("group", t.env.Graph.Group), zap.Int("failures", t.noted), zap.Error(err), stackOf(err))
	}
}

// mayNote counts something to be noted and reports whether to log it.
func (t *Task) mayNote() bool {
	t.noted++
	return t.noted <= 10 || t.noted&(t.noted-1) == 0
}

// stackOf is the stack of a panic as a field of a log line.
func stackOf(err error) zap.Field {
	if p, ok := errors.AsType[*PanicError](err); ok {
		return zap.ByteString("stack", p.Stack)
	}
	return zap.Skip()
}
