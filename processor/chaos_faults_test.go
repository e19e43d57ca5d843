package processor_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

var (
	errDisk     = errors.New("no space left on device")
	errHiccough = errors.New("coordinator is loading")
	errGone     = errors.New("connection reset by peer")
)

// mishaps decides what becomes of the calls that processes make. A decision
// depends on the seed and on the call's own history only, so that it is the
// same on every run whatever goroutines run beside it.
type mishaps struct {
	seed int64
	// stalls says that processes are paused and expelled in this schedule.
	// Then writes to changelogs are not delayed without transactions: what is
	// under way while its writer loses the partition may arrive behind the
	// next owner's rows, and only transactions can help that.
	stalls bool
	terms  terms

	mu     sync.Mutex
	mode   string            // guarded by mu; what may happen now
	counts map[string]uint64 // guarded by mu; calls of each kind and place
	left   int               // guarded by mu; how many may still happen in this mode
	denied map[string]bool   // guarded by mu; who may not write any more, and where
	ids    map[string]string // guarded by mu; the last transactional id of each instance
	log    []string          // guarded by mu
}

func newMishaps(seed int64, stalls bool, tr terms) *mishaps {
	return &mishaps{seed: seed, stalls: stalls, terms: tr, mode: "calm",
		counts: map[string]uint64{}, denied: map[string]bool{}, ids: map[string]string{}}
}

// transaction returns the transactional id that an instance used last.
func (m *mishaps) transaction(instance string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ids[instance]
}

// set begins another mode: "calm", "crash", "slow", "lossy", "storm",
// "drag" or "fail".
func (m *mishaps) set(mode string, left int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mode, m.left = mode, left
}

// forgive lets an instance write again what it was denied.
func (m *mishaps) forgive(instance string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for place := range m.denied {
		if strings.HasPrefix(place, instance+" ") {
			delete(m.denied, place)
		}
	}
}

// happened returns what has happened since it was last asked.
func (m *mishaps) happened() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.log
	m.log = nil
	return l
}

// hook is asked about every call.
func (m *mishaps) hook(c tester.Call) tester.Action {
	m.mu.Lock()
	defer m.mu.Unlock()
	place := fmt.Sprintf("%s %s %s %s/%d", c.Instance, c.Op, c.Group, c.Topic, c.Partition)
	m.counts[place]++
	if c.Op == tester.OpInitProducer && c.Own || c.Op == tester.OpEndTxn {
		m.ids[c.Instance] = c.Transaction
	}
	if m.denied[place] { // as long as it lives: a right does not come and go
		return tester.Error(kafka.ErrNotAuthorized)
	}
	if m.mode == "calm" || m.left == 0 || c.Instance == "test" {
		return tester.Proceed
	}
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s %d %s", m.seed, place, m.counts[place], m.mode)
	a, what := m.action(c, place, spread(h.Sum64()))
	if what == "" {
		return tester.Proceed
	}
	m.left--
	m.log = append(m.log, fmt.Sprintf("          %s #%d: %s", place, m.counts[place], what))
	met.add(c.Op, what)
	return a
}

// spread finishes a hash whose last bits say little.
func spread(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func (m *mishaps) action(c tester.Call, place string, dice uint64) (tester.Action, string) {
	n := dice / 1000
	switch m.mode {
	case "storm": // of what only transactions meet, and of delays
		if n = dice / 1_000_000; c.Transaction != "" && c.Op != tester.OpMarker && dice/1000%1000 < 60 {
			return lost(n)
		}
		if dice%1000 < 200 && !m.harmful(c) {
			d := time.Duration(1+n%4000) * time.Millisecond
			return tester.Delay(d), "delay " + d.String()
		}
	case "drag": // what ends transactions takes long
		if n%10 < 5 && (c.Op == tester.OpMarker || c.Op == tester.OpEndTxn || c.Op == tester.OpTxnOffsets) {
			d := time.Duration(200+n/10%6000) * time.Millisecond
			return tester.Delay(d), "delay " + d.String()
		}
	case "crash":
		if dice%1000 < 50 {
			return []tester.Action{tester.CrashBefore, tester.CrashWithin, tester.CrashAfter}[n%3], []string{"crash before", "crash within", "crash after"}[n%3]
		}
	case "slow":
		if dice%1000 < 150 && !m.harmful(c) {
			d := time.Duration(1+n%4000) * time.Millisecond
			return tester.Delay(d), "delay " + d.String()
		}
	case "lossy":
		if c.Transaction != "" && c.Op != tester.OpMarker && dice%1000 < 100 {
			return lost(n)
		}
	case "fail":
		if errs := failures[c.Op]; len(errs) > 0 && dice%1000 < 100 {
			err := errs[n%uint64(len(errs))]
			if c.Op == tester.OpProduce {
				m.denied[place] = true
			}
			return tester.Error(err), "error " + err.Error()
		}
	}
	return tester.Proceed, ""
}

// lost is what becomes of a request without an answer.
func lost(n uint64) (tester.Action, string) {
	late := time.Duration(1+n/3%8000) * time.Millisecond
	return []tester.Action{tester.Lost, tester.ErrorAfter(errGone), tester.Late(late)}[n%3], []string{"lost", "answer lost", "late"}[n%3]
}

// harmful reports whether a delay of a call may do what only transactions
// help against.
func (m *mishaps) harmful(c tester.Call) bool {
	group := "tally"
	if strings.HasPrefix(c.Instance, "sum") {
		group = "sum"
	}
	return m.stalls && c.Op == tester.OpProduce && c.Topic != "changes" && !m.terms.exactState(group)
}

// failures are the errors that the real driver lets out of each call.
var failures = map[tester.Op][]error{
	tester.OpProduce:       {kafka.ErrNotAuthorized},
	tester.OpFetch:         {kafka.ErrNotAuthorized},
	tester.OpJoin:          {errHiccough, kafka.ErrRebalanceInProgress},
	tester.OpSync:          {errHiccough, kafka.ErrRebalanceInProgress},
	tester.OpCommit:        {kafka.ErrRebalanceInProgress, kafka.ErrIllegalGeneration, kafka.ErrNotAuthorized},
	tester.OpCommitted:     {kafka.ErrNotAuthorized},
	tester.OpInitProducer:  {kafka.ErrNotAuthorized},
	tester.OpAddPartitions: {kafka.ErrNotAuthorized, kafka.ErrAbortable, kafka.ErrFenced},
	tester.OpAddOffsets:    {kafka.ErrNotAuthorized, kafka.ErrAbortable, kafka.ErrFenced},
	tester.OpTxnOffsets:    {kafka.ErrNotAuthorized, kafka.ErrAbortable, kafka.ErrFenced, kafka.ErrRebalanceInProgress, kafka.ErrIllegalGeneration, kafka.ErrUnknownMember},
	tester.OpEndTxn:        {kafka.ErrAbortable, kafka.ErrFenced},
	tester.OpTopics:        {kafka.ErrNotAuthorized},
	tester.OpConfigs:       {kafka.ErrNotAuthorized},
	tester.OpCreateTopics:  {kafka.ErrNotAuthorized},
	tester.OpOffsets:       {kafka.ErrNotAuthorized},
	tester.OpDeleteRecords: {kafka.ErrNotAuthorized},
	tester.OpWriters:       {kafka.ErrNotAuthorized, kafka.ErrUnsupported},
	tester.OpEpochEnd:      {kafka.ErrNotAuthorized, kafka.ErrUnsupported},
	tester.OpLeave:         {errHiccough},
	tester.OpOpenTable:     {errDisk},
	tester.OpApply:         {errDisk},
	tester.OpClear:         {errDisk},
}

// expected reports whether a processor may end with err in a schedule.
func expected(err error) bool {
	var store *processor.StoreError
	return errors.Is(err, kafka.ErrNotAuthorized) || errors.Is(err, errDisk) && (errors.As(err, &store) || strings.Contains(err.Error(), "lookup") || strings.Contains(err.Error(), "view"))
}

// tallyOfMishaps counts over all schedules what was met.
type tallyOfMishaps struct {
	mu  sync.Mutex
	all map[string]int // guarded by mu
}

var met = tallyOfMishaps{all: map[string]int{}}

func (m *tallyOfMishaps) add(op tester.Op, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if strings.HasPrefix(what, "delay") {
		what = "delay"
	}
	m.all[string(op)+": "+what]++
}

// lines returns the counts, sorted.
func (m *tallyOfMishaps) lines() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]string, 0, len(m.all))
	for k, n := range m.all {
		out = append(out, fmt.Sprintf("%6d × %s", n, k))
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(a[9:], b[9:]) })
	return out
}
