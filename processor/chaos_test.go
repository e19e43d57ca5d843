package processor_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

var (
	chaosRuns  = flag.Int("chaos.runs", 0, "how many random schedules to run; 0: a few")
	chaosSeed  = flag.Int64("chaos.seed", 1, "seed of the first schedule")
	chaosSteps = flag.Int("chaos.steps", 20, "steps of a schedule")
	chaosOf    = flag.String("chaos.guarantee", "", "exactly, least or without: the guarantee of both groups; none: it varies")
	chaosShow  = flag.Bool("chaos.show", false, "show the schedules and the engine's log as they run")
)

// Random schedules of everything that can happen to processes and their
// calls, each the same on every run of its seed. Whatever happened, when it
// has passed the chain is whole: no order lost, tables equal to their topics,
// no order of a key broken, offsets never back. With transactions nothing is
// counted twice; exactly once, no output appears twice.
//
//	go test ./processor -run Chaos -args -chaos.runs=5000
//	go test ./processor -run Chaos -v -args -chaos.seed=77 -chaos.runs=1 -chaos.show
func TestChaosLosesNothing(t *testing.T) {
	runs := *chaosRuns
	if runs == 0 {
		runs = 40
	}
	for i := range int64(runs) { // not in parallel: testers slow each other down
		seed := *chaosSeed + i
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newChaos(t, seed, nil).run() }) {
			break
		}
	}
	for _, l := range met.lines() {
		t.Log(l)
	}
}

// chaos is one schedule. Owned by the test's goroutine.
type chaos struct {
	t      testing.TB
	tt     *tester.Tester
	fault  *planted // nil: none
	seed   int64
	rnd    *rand.Rand
	m      *mishaps
	c      *complaints
	nodes  []*node
	terms  terms
	sent   map[string]int64
	steps  []string
	before map[string]int64 // committed offsets when last seen

	orders *tester.InputTopic[int64]
	prices *tester.InputTopic[int64]
}

const (
	chaosPartitions = 2
	chaosPatience   = time.Minute // schedules run for hours beside other work
)

func newChaos(t testing.TB, seed int64, fault *planted) *chaos {
	rnd := rand.New(rand.NewPCG(uint64(seed), 0))
	log := zap.NewNop()
	if *chaosShow {
		log, _ = zap.NewDevelopment()
	}
	tt := tester.New(t, tester.WithPartitions(chaosPartitions), tester.WithLogger(log), tester.WithPatience(chaosPatience))
	c := &chaos{
		t: t, tt: tt, fault: fault, seed: seed, rnd: rnd, c: &complaints{}, sent: map[string]int64{}, before: map[string]int64{},
		terms:  newTerms(rnd),
		orders: tester.Input(tt, orders), prices: tester.Input(tt, prices),
	}
	if fault != nil {
		c.terms.tally, c.terms.sum = processor.ExactlyOnce, processor.ExactlyOnce
	}
	c.m = newMishaps(seed, rnd.IntN(2) == 0, c.terms)
	tester.Output(tt, changes)
	seeded := tester.Input(tt, whoIsWho)
	for i := range chaosKeys {
		seeded.Send(key(i), "somebody")
		seeded.Send("loop-"+key(i), "somebody")
	}
	t.Cleanup(func() {
		for _, nd := range c.nodes {
			nd.Resume() // or it cannot end
		}
		if t.Failed() {
			t.Logf("seed %d, terms %+v\nschedule:\n  %s", seed, c.terms, strings.Join(c.steps, "\n  "))
		}
	})
	return c
}

// newTerms draws the terms of a schedule: half of them run exactly once
// throughout.
func newTerms(rnd *rand.Rand) terms {
	tr := terms{
		dynamic: rnd.IntN(3) == 0, first: rnd.IntN(2) == 0,
		commit:      time.Duration(1+rnd.IntN(500)) * time.Millisecond,
		transaction: []time.Duration{2 * time.Second, 10 * time.Second, time.Minute}[rnd.IntN(3)],
		tuning: processor.Tuning{
			EpochBytes: []int{300, 3000, 0}[rnd.IntN(3)], FlushBytes: []int{1, 300, 0}[rnd.IntN(3)],
			CacheBytes: []int{500, 0}[rnd.IntN(2)], FetchBytes: []int{100, 0}[rnd.IntN(2)],
			FlushAge: time.Duration(1+rnd.IntN(30)) * time.Second,
		},
	}
	if rnd.IntN(2) == 0 {
		tr.tally, tr.sum = processor.Guarantee(rnd.IntN(3)), processor.Guarantee(rnd.IntN(3))
	}
	if g, ok := map[string]processor.Guarantee{"exactly": processor.ExactlyOnce, "least": processor.AtLeastOnce, "without": processor.WithoutTransactions}[*chaosOf]; ok {
		tr.tally, tr.sum = g, g
	}
	return tr
}

const chaosKeys = 6

func key(i int) string { return fmt.Sprint("key-", i) }

func (c *chaos) run() {
	c.tt.Hook(c.m.hook)
	c.add("views", "")
	for i := range 1 + c.rnd.IntN(3) {
		c.add(fmt.Sprint("tally", i), "tally")
	}
	for i := range 1 + c.rnd.IntN(3) {
		c.add(fmt.Sprint("sum", i), "sum")
	}
	for range *chaosSteps {
		c.step()
		if c.t.Failed() {
			return
		}
	}
	c.heal()
	c.check()
}

func (c *chaos) notef(format string, a ...any) {
	s := c.tt.Now().Format("04:05.000 ") + fmt.Sprintf(format, a...)
	c.steps = append(append(c.steps, c.m.happened()...), s)
	if *chaosShow {
		fmt.Println("CHAOS", s)
	}
}

// add starts an instance.
func (c *chaos) add(name, group string) {
	nd := &node{name: name, disk: newDisk(name)}
	c.notef("start %s", name)
	nd.Instance = c.tt.Start(name, nd.build(group, c.terms, c))
	c.nodes = append(c.nodes, nd)
}

// step does one random thing and lets it settle.
func (c *chaos) step() {
	c.mishaps()
	nd := c.nodes[c.rnd.IntN(len(c.nodes))]
	switch n := c.rnd.IntN(25); {
	case n < 6:
		c.send(1 + c.rnd.IntN(30))
	case n < 9:
		c.advance(time.Duration(1+c.rnd.IntN(3000)) * time.Millisecond)
	case n < 10:
		c.advance(time.Duration(5+c.rnd.IntN(30)) * time.Second)
	case n < 12:
		c.crash(nd)
	case n < 14:
		c.restart(nd)
	case n < 16 && c.m.stalls:
		c.pause(nd)
	case n < 17 && c.m.stalls:
		group := []string{"tally", "sum"}[c.rnd.IntN(2)]
		c.notef("expel %s from %s", nd.name, group)
		c.tt.Expel(group, nd.Instance)
	case n < 18:
		group := []string{"tally", "sum"}[c.rnd.IntN(2)]
		c.notef("rebalance %s", group)
		c.tt.Rebalance(group)
	case n < 20:
		c.compact()
	case n < 24:
		c.disturb(nd)
	default:
		c.blackout()
	}
	if c.rnd.IntN(2) == 0 {
		c.tt.Settle()
	}
	c.bury()
	c.offsets()
}

// mishaps chooses what may happen to calls during the next step.
func (c *chaos) mishaps() {
	mode, left := "calm", 0
	switch c.rnd.IntN(8) {
	case 0, 1:
		mode, left = "crash", 1+c.rnd.IntN(2)
	case 2, 3:
		mode, left = "slow", 10
	case 4:
		mode, left = "fail", 1+c.rnd.IntN(3)
	case 5:
		mode, left = "lossy", 1+c.rnd.IntN(4)
	}
	c.m.set(mode, left)
}

func (c *chaos) send(n int) {
	c.notef("send %d", n)
	for range n {
		k := key(c.rnd.IntN(chaosKeys))
		c.order(k)
		if c.rnd.IntN(5) == 0 {
			c.prices.Send(k, c.rnd.Int64N(100))
		}
	}
}

func (c *chaos) order(k string) {
	c.sent[k]++
	c.orders.Send(k, c.sent[k])
}

func (c *chaos) advance(d time.Duration) {
	c.notef("advance %s", d)
	c.tt.Advance(d)
}

func (c *chaos) crash(nd *node) {
	c.notef("crash %s", nd.name)
	nd.paused = false
	nd.Crash()
}

func (c *chaos) pause(nd *node) {
	if nd.paused {
		c.notef("resume %s", nd.name)
		nd.Resume()
		nd.paused = false
		return
	}
	c.notef("pause %s", nd.name)
	c.tt.Settle()
	nd.Pause()
	nd.paused = !nd.Crashed()
}

// restart starts an instance again, perhaps with an empty disk.
func (c *chaos) restart(nd *node) {
	if nd.paused {
		c.notef("resume %s", nd.name)
		nd.Resume()
		nd.paused = false
	}
	empty := c.rnd.IntN(3) == 0
	c.notef("restart %s, empty %t", nd.name, empty)
	if !nd.Crashed() {
		if err := nd.Stop(); err != nil && !expected(err) {
			c.t.Errorf("stop of %s: %v", nd.name, err)
		}
	}
	c.m.forgive(nd.name)
	if empty {
		c.format(nd)
	}
	nd.Restart()
}

// format gives an instance an empty disk.
func (c *chaos) format(nd *node) {
	nd.disks++
	nd.disk = newDisk(fmt.Sprint(nd.name, ".", nd.disks))
}

// bury looks after instances that ended, by a crash or by themselves, and
// brings most of them back.
func (c *chaos) bury() {
	for _, nd := range c.nodes {
		if !nd.Crashed() || c.rnd.IntN(2) == 0 {
			c.revive(nd)
		}
	}
}

// revive starts an instance again if it has ended.
func (c *chaos) revive(nd *node) {
	if c.ended(nd) {
		nd.paused = false
		c.restart(nd)
	}
}

// ended reports whether an instance has ended, which it may do for some
// reasons only.
func (c *chaos) ended(nd *node) bool {
	err := nd.Err()
	if err != nil && !nd.Crashed() && !expected(err) {
		c.t.Errorf("%s ended: %v", nd.name, err)
	}
	return err != nil
}

func (c *chaos) compact() {
	for _, topic := range []string{"tally-table", "sum-table", "tally-seen-changelog", "sum-ledger-changelog", "sum-hits-changelog", "prices"} {
		if c.rnd.IntN(2) == 0 && c.exists(topic) {
			c.notef("compact %s", topic)
			c.tt.Compact(topic)
		}
	}
}
