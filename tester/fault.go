package tester

import (
	"context"
	"time"

	"github.com/rekastream/reka/kafka"
)

// Op is a kind of call that a process makes to the outside.
type Op string

// The operations. A Fetch is the delivery of one batch; Apply, Clear and
// OpenTable are those of a Store that came from the instance.
const (
	OpProduce          Op = "produce"
	OpFetch            Op = "fetch"
	OpJoin             Op = "join"
	OpSync             Op = "sync"
	OpLeave            Op = "leave"
	OpCommit           Op = "commit"
	OpCommitted        Op = "committed"
	OpTopics           Op = "topics"
	OpConfigs          Op = "configs"
	OpCreateTopics     Op = "create topics"
	OpCreatePartitions Op = "create partitions"
	OpDeleteTopics     Op = "delete topics"
	OpOffsets          Op = "offsets"
	OpDeleteRecords    Op = "delete records"
	OpDescribeGroup    Op = "describe group"
	OpWriters          Op = "describe producers"
	OpEpochEnd         Op = "end of epoch"
	OpOpenTable        Op = "open table"
	OpApply            Op = "apply"
	OpClear            Op = "clear"
)

// The requests of transactions, which produce with OpProduce too. A Marker is
// one control record that the brokers write when a transaction has ended, or
// the end of its pending offsets in one group: of the actions only Delay does
// something to it, and it belongs to no instance.
const (
	OpInitProducer  Op = "init producer"
	OpAddPartitions Op = "add partitions"
	OpAddOffsets    Op = "add offsets"
	OpTxnOffsets    Op = "transaction offsets"
	OpEndTxn        Op = "end transaction"
	OpMarker        Op = "marker"
)

// Call is one call, as hooks and faults see it.
type Call struct {
	Op       Op
	Instance string
	// Topic and Partition are those of the call, or the first of several;
	// for a store the table's. Partition is -1 where there is none.
	Topic     string
	Partition int32
	Group     string
	// Transaction is the transactional id, if the call belongs to one.
	Transaction string
	// Own says that an InitProducer names the epoch that it has.
	Own bool
	// Commit is the direction of an EndTxn or a Marker.
	Commit bool
	// N counts the calls of this Op in the whole test, from 1.
	N int
}

// Action says what becomes of a call.
type Action struct {
	kind  actionKind
	err   error
	delay time.Duration
}

type actionKind int8

const (
	proceed actionKind = iota
	failBefore
	failAfter
	crashBefore
	crashWithin
	crashAfter
	delayed
	lost
	late
)

// The actions without a parameter.
var (
	// Proceed: nothing special. It is the zero Action.
	Proceed = Action{}
	// CrashBefore: the process dies, and the call had no effect.
	CrashBefore = Action{kind: crashBefore}
	// CrashWithin: the process dies when half of the call had its effect:
	// half of the records are written, half of the rows are applied and the
	// checkpoint is not. Other calls have none.
	CrashWithin = Action{kind: crashWithin}
	// CrashAfter: the process dies when the call had its effect and before
	// it learns of it.
	CrashAfter = Action{kind: crashAfter}
)

// Error makes the call fail with err, without an effect. err should be one that
// the real driver can return from such a call; for a Fetch it ends the
// following. A Join or Sync that fails with what is not kafka.Permanent is
// repeated after a pause.
func Error(err error) Action { return Action{kind: failBefore, err: err} }

// ErrorAfter lets the call have its effect and fail with err all the same, as
// when its answer is lost.
func ErrorAfter(err error) Action { return Action{kind: failAfter, err: err} }

// Delay makes the call take d of virtual time before it has its effect. Calls
// behind it that must stay in order wait too. A request of a transaction is
// on its way meanwhile, and arrives although its process gives up or dies.
func Delay(d time.Duration) Action { return Action{kind: delayed, delay: d} }

// Lost lets a request of a transaction get lost on its way: it has no effect,
// and the process cannot know that. Other calls proceed.
var Lost = Action{kind: lost}

// Late lets a request of a transaction seem lost, but it arrives d of virtual
// time later, once, whatever its process has done by then, if that still
// lives at all. Other calls proceed.
func Late(d time.Duration) Action { return Action{kind: late, delay: d} }

// Fault does something to calls that match: all fields that are set must.
type Fault struct {
	Op       Op
	Instance string
	Topic    string
	Group    string
	// Transaction is a transactional id.
	Transaction string
	// Partition, if not nil, is the one concerned.
	Partition *int32

	// Nth is the matching call that is meant, from 1 at the time of Fail. 0:
	// the next one.
	Nth int
	// Times is how many calls from the Nth on are concerned. 0: one. -1:
	// all.
	Times int

	Do Action
}

// faults are the world's rules and counts. They are guarded by world.mu.
type faults struct {
	rules  []*rule
	hooks  []func(Call) Action
	counts map[Op]int
}

type rule struct {
	Fault
	seen int
}

func (r *rule) matches(c Call) bool {
	f := &r.Fault
	return (f.Op == "" || f.Op == c.Op) && (f.Instance == "" || f.Instance == c.Instance) &&
		(f.Topic == "" || f.Topic == c.Topic) && (f.Group == "" || f.Group == c.Group) &&
		(f.Transaction == "" || f.Transaction == c.Transaction) &&
		(f.Partition == nil || *f.Partition == c.Partition)
}

// Fail adds a fault. The first fault that is due decides about a call.
func (t *Tester) Fail(f Fault) {
	t.enter()
	w := t.w
	w.mu.Lock()
	defer w.mu.Unlock()
	f.Nth = max(f.Nth, 1)
	if f.Times == 0 {
		f.Times = 1
	}
	w.faults.rules = append(w.faults.rules, &rule{Fault: f})
}

// Hook adds a function that is asked about every call of every instance, on
// the goroutine that makes the call. It must not use the Tester. The first
// answer that is not Proceed counts; faults come before hooks.
func (t *Tester) Hook(f func(Call) Action) {
	t.enter()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.w.faults.hooks = append(t.w.faults.hooks, f)
}

// Calls returns how many calls of each kind were made so far.
func (t *Tester) Calls() map[Op]int {
	t.enter()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	out := map[Op]int{}
	for op, n := range t.w.faults.counts {
		out[op] = n
	}
	return out
}

// decide counts a call and asks rules and hooks about it.
func (w *world) decide(c Call) Action {
	w.mu.Lock()
	w.faults.counts[c.Op]++
	c.N = w.faults.counts[c.Op]
	a := Proceed
	for _, r := range w.faults.rules {
		if !r.matches(c) {
			continue
		}
		r.seen++
		if a == Proceed && r.seen >= r.Nth && (r.Times < 0 || r.seen < r.Nth+r.Times) {
			a = r.Do
		}
	}
	hooks := w.faults.hooks
	w.mu.Unlock()
	for _, h := range hooks {
		if a == Proceed {
			a = h(c)
		}
	}
	return a
}

// call makes one blocking call: it waits while the process is paused, asks
// the faults, and has its effect. effect is called without locks, with half
// set if the process dies in the middle of it.
func (inc *incarnation) call(ctx context.Context, c Call, effect func(half bool) error) error {
	if err := inc.enter(ctx); err != nil {
		return err
	}
	c.Instance = inc.name
	a := inc.w.decide(c)
	switch a.kind {
	case failBefore:
		return a.err
	case failAfter:
		if err := effect(false); err != nil {
			return err
		}
		return a.err
	case delayed:
		if err := inc.sleep(ctx, a.delay); err != nil {
			return err
		}
		if err := inc.enter(ctx); err != nil {
			return err
		}
		return effect(false)
	case crashBefore:
		inc.kill()
		return kafka.ErrClosed
	case crashWithin:
		// Its own error does not matter: nobody is left to see it.
		_ = effect(true)
		inc.kill()
		return kafka.ErrClosed
	case crashAfter:
		_ = effect(false)
		inc.kill()
		return kafka.ErrClosed
	default:
		return effect(false)
	}
}
