package graph

import (
	"errors"
	"fmt"
	"time"
)

// Action is what finally becomes of a record that fails.
type Action int8

// Actions.
const (
	Fail       Action = iota // the processor stops; the record stays uncommitted
	Skip                     // the record is counted and passed
	DeadLetter               // the record goes to Policy.Topic with the cause in its headers
)

// String returns the action's name.
func (a Action) String() string {
	switch a {
	case Skip:
		return "skip"
	case DeadLetter:
		return "dead letter"
	default:
		return "fail"
	}
}

// Policy says what becomes of a record that fails: up to Attempts further
// tries, then Action.
type Policy struct {
	Action Action
	Topic  string // of DeadLetter

	Attempts int           // further tries after the first; 0: none
	Backoff  time.Duration // before the first further try; doubles
	Max      time.Duration // bound of the doubling
}

// String describes the policy.
func (p Policy) String() string {
	s := p.Action.String()
	if p.Topic != "" {
		s += " to " + p.Topic
	}
	if p.Attempts > 0 {
		s = fmt.Sprintf("retry %d times from %v to %v, then %s", p.Attempts, p.Backoff, p.Max, s)
	}
	return s
}

// Wait returns how long to wait before further try n, counted from 1.
func (p Policy) Wait(n int) time.Duration {
	d := p.Backoff
	for ; n > 1 && d < p.Max; n-- {
		d *= 2
	}
	return min(d, p.Max)
}

func (p Policy) validate(produce bool) error {
	if p.Action == DeadLetter {
		if err := checkTopic(p.Topic); err != nil {
			return err
		}
	}
	if produce && (p.Action == Skip || p.Attempts > 0) {
		return errors.New("a record that cannot be written fails, or goes to a dead-letter topic")
	}
	if p.Attempts < 0 || p.Backoff < 0 || p.Max < p.Backoff {
		return fmt.Errorf("attempts %d, backoff %v up to %v", p.Attempts, p.Backoff, p.Max)
	}
	if p.Attempts > 0 && p.Backoff == 0 {
		return errors.New("retry without a backoff")
	}
	return nil
}
