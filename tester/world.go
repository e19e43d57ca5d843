package tester

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekastream/reka/kafka"
)

// world is everything that the tester stands for: the brokers, the clock, and
// the order in which things happen. Its pump goroutine makes them happen, one
// at a time; see the package's documentation.
type world struct {
	// Fixed after newWorld.
	kick   chan struct{} // capacity 1: coalesced wake-up of the pump
	ended  chan struct{} // closed when the pump has ended
	number int64         // tells worlds of one process apart

	// running counts engine goroutines that are not parked. Those that run a
	// Runner count from before they start until they are first seen parked
	// (starting is how many of them still do): such a goroutine may wait in
	// ways that nobody counts.
	running  atomic.Int64
	starting atomic.Int64
	activity atomic.Uint64 // changes whenever something was counted

	mu      sync.Mutex
	closing bool
	idle    bool // the pump has nothing to do until it is kicked

	// What lets the pump move. See drive.go.
	driver   int64 // goroutine that last used the tester's API
	settlers []chan struct{}
	advance  *advance
	open     int // holders of permission to move at any time
	timeRuns int // holders who also let time pass when all else is done

	clock    clock
	runners  []*runner // those that count in starting
	waiters  map[*waiter]struct{}
	topics   map[string]*topic
	groups   map[string]*group
	txns     map[string]*coordination // by transactional id
	markers  []*marker                // to be written, oldest first
	faults   faults
	incs     []*incarnation // alive ones
	follows  []*follower    // in order of topic, partition, then age
	defaults defaults
	sequence int64 // of appended records, over all partitions
	ids      int64 // topics, members, followers
}

// defaults are what the options of New set.
type defaults struct {
	partitions  int32
	partitioner kafka.Partitioner
}

var worlds atomic.Int64

func newWorld(start time.Time, d defaults) *world {
	w := &world{
		kick:     make(chan struct{}, 1),
		ended:    make(chan struct{}),
		number:   worlds.Add(1),
		clock:    clock{now: start},
		waiters:  map[*waiter]struct{}{},
		topics:   map[string]*topic{},
		groups:   map[string]*group{},
		txns:     map[string]*coordination{},
		defaults: d,
	}
	w.faults.counts = map[Op]int{}
	go w.pump() // ends with close, which waits for it
	return w
}

// close ends the pump.
func (w *world) close() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	w.wake()
	<-w.ended
}

// wake makes the pump look again.
func (w *world) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// changed is called with mu held when something new may be due.
func (w *world) changed() {
	if w.idle {
		w.idle = false
		w.wake()
	}
}

// nextID numbers what needs a number. mu is held.
func (w *world) nextID() int64 {
	w.ids++
	return w.ids
}

// counter is the work.Counter of one incarnation.
type counter struct {
	w *world
	n atomic.Int64
}

// Add counts goroutines of the incarnation, and so of the world.
func (c *counter) Add(delta int) {
	c.n.Add(int64(delta))
	c.w.count(int64(delta))
}

// count changes the number of running goroutines and kicks the pump when
// nothing is left to wait for.
func (w *world) count(delta int64) {
	w.activity.Add(1)
	if w.running.Add(delta) <= w.starting.Load() && delta < 0 {
		w.wake()
	}
}
