package processor

import (
	"fmt"
	"time"

	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
)

// Phase is where a record can fail.
type Phase int8

// The phases.
const (
	// Decode: the codec refuses the record's value, or it has no timestamp.
	Decode Phase = iota
	// Process: the callback returned an error or panicked, a value could not
	// be encoded, a stored one not decoded, an emitted record is too large.
	Process
	// Produce: the broker refused an emitted record for good although it had
	// passed every check (its topic was deleted meanwhile, say).
	Produce
)

// Policy says what becomes of a record that fails.
type Policy struct{ p graph.Policy }

// Policies without parameters.
var (
	// Fail stops the processor: Run returns the error, the record stays
	// uncommitted and comes again after a restart. It is the default of
	// every phase.
	Fail = Policy{graph.Policy{Action: graph.Fail}}

	// SkipAndCount passes over the record and counts it. Not for Produce.
	SkipAndCount = Policy{graph.Policy{Action: graph.Skip}}
)

// DeadLetters writes the record as it was, with the cause in headers
// (reka-topic, reka-partition, reka-offset, reka-phase, reka-error), to a
// topic, in the same epoch in which it is passed over.
func DeadLetters(topic string) Policy {
	return Policy{graph.Policy{Action: graph.DeadLetter, Topic: topic}}
}

// Retry repeats the record up to attempts more times, waiting backoff before
// the first, twice as long before each further one but at most a minute, and
// then does what then says. Meanwhile the partition waits; other partitions,
// heartbeats and commits go on. Each try starts clean. Not for Produce.
func Retry(attempts int, backoff time.Duration, then Policy) Policy {
	p := then.p
	p.Attempts, p.Backoff, p.Max = attempts, backoff, max(backoff, time.Minute)
	return Policy{p}
}

// OnError declares what becomes of a record that fails in a phase.
func OnError(phase Phase, p Policy) Edge {
	return edgeFunc(func(d *declaration) error {
		if d.policies[phase] {
			return fmt.Errorf("two error policies for one phase")
		}
		d.policies[phase] = true
		switch phase {
		case Decode:
			d.graph.OnDecode = p.p
		case Process:
			d.graph.OnProcess = p.p
		case Produce:
			d.graph.OnProduce = p.p
		default:
			return fmt.Errorf("error policy for unknown phase %d", phase)
		}
		return nil
	})
}

// AsSkip makes a callback's error skip and count the record, whatever the
// policy says. A nil error stays nil.
func AsSkip(err error) error { return steer(err, graph.Skip) }

// AsDeadLetter makes a callback's error send the record to the dead-letter
// topic that the graph's policies name; without one it fails.
func AsDeadLetter(err error) error { return steer(err, graph.DeadLetter) }

// AsFatal makes a callback's error stop the processor.
func AsFatal(err error) error { return steer(err, graph.Fail) }

// AsRetry makes a callback's error repeat the record on the terms of the
// Process policy, or five times with growing pauses from 100 ms if that does
// not say how.
func AsRetry(err error) error {
	if err == nil {
		return nil
	}
	return &task.SteerError{Err: err, Retry: true}
}

func steer(err error, a graph.Action) error {
	if err == nil {
		return nil
	}
	return &task.SteerError{Err: err, Action: a}
}
