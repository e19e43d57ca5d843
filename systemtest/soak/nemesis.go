package soak

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rekastream/reka/systemtest/realkafka"
)

// nemesis owns the fleet, the nodes and the proxies, and does to them what
// the schedule says. Everything happens on the goroutine of run; ask and
// later bring work to it.
type nemesis struct {
	cfg     Config
	cluster *realkafka.Cluster
	proxies *proxies
	brokers *brokers
	service service
	log     io.Writer
	began   time.Time

	ends   chan ended
	asks   chan func()
	closed chan struct{}
	done   chan struct{}
	helper sync.WaitGroup // goroutines that wait for nodes

	// Owned by run.
	fleet    []*process
	calm     bool         // no more faults
	nodeBusy bool         // a node is down or catches up, or leaders move
	nodeDown int          // -1: none
	touched  map[int]bool // nodes whose proxy is not clear
	counts   map[string]int
	troubles []string // what processes did that they must not
	stuck    []string
}

func newNemesis(cfg Config, log io.Writer) *nemesis {
	return &nemesis{
		cfg: cfg, log: log, ends: make(chan ended, 16), asks: make(chan func()),
		closed: make(chan struct{}), done: make(chan struct{}),
		nodeDown: -1, touched: map[int]bool{}, counts: map[string]int{},
	}
}

// run is the owner's loop. It ends with close.
func (n *nemesis) run() {
	defer close(n.done)
	for {
		select {
		case f := <-n.asks:
			f()
		case e := <-n.ends:
			n.ended(e)
		case <-n.closed:
			for _, p := range n.fleet {
				if p.status != down {
					_ = p.signal(syscall.SIGKILL) // nothing is waited for any more
					<-n.ends
				}
			}
			return
		}
	}
}

// ask runs f on the owner's goroutine and waits for it.
func (n *nemesis) ask(f func()) {
	done := make(chan struct{})
	select {
	case n.asks <- func() { f(); close(done) }:
		<-done
	case <-n.done:
	}
}

// later runs f on the owner's goroutine when d has passed.
func (n *nemesis) later(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		select {
		case n.asks <- f:
		case <-n.done:
		}
	})
}

// close kills what still runs and waits.
func (n *nemesis) close() {
	close(n.closed)
	<-n.done
	n.helper.Wait()
	for _, p := range n.fleet {
		if p.disk != nil {
			if err := p.disk.unmount(); err != nil {
				n.notef("unmount the disk of %s: %v", p.name, err)
			}
		}
	}
}

func (n *nemesis) notef(format string, a ...any) {
	now := time.Now()
	fmt.Fprintf(n.log, "%s %8.3fs %s\n", now.Format("15:04:05.000"), now.Sub(n.began).Seconds(), fmt.Sprintf(format, a...))
}

func (n *nemesis) troublef(format string, a ...any) {
	s := fmt.Sprintf(format, a...)
	n.notef("TROUBLE: %s", s)
	n.troubles = append(n.troubles, s)
}

// addProcess makes a new member of the fleet and starts it.
func (n *nemesis) addProcess() error {
	slot := len(n.fleet)
	p := &process{
		slot: slot, name: fmt.Sprint("process-", slot), member: true,
		dir: filepath.Join(n.cfg.Dir, fmt.Sprint("state-", slot)),
		log: filepath.Join(n.cfg.Dir, fmt.Sprint("process-", slot, ".log")),
	}
	if slot == 0 {
		d, err := mountDisk(filepath.Join(n.cfg.Dir, "disk-0"))
		if err != nil {
			n.notef("no disk is filled: %v", err)
		} else {
			p.disk, p.dir = d, d.state()
		}
	}
	n.fleet = append(n.fleet, p)
	return n.start(p)
}

func (n *nemesis) start(p *process) error {
	n.notef("start %s", p.name)
	p.startAt = time.Time{}
	if err := p.start(n.service, n.ends); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	return nil
}

// revive starts a member that is down, if its time has come.
func (n *nemesis) revive(p *process) {
	if p.status != down || !p.member || p.filled || time.Now().Before(p.startAt) {
		return
	}
	if err := n.start(p); err != nil {
		n.troublef("%v", err)
	}
}

// ended judges how a process ended and starts it again when it is due.
func (n *nemesis) ended(e ended) {
	p := e.p
	was, age := p.status, time.Since(p.since)
	p.status, p.cmd = down, nil
	n.notef("%s ended, was %v: %s", p.name, was, e.text)
	switch {
	case p.doomed: // killed
	case was == stopping && (e.code == exitOK || e.code == -1 && age < 3*time.Second && e.text == "signal: terminated"):
	case was == stopping && e.code == exitTimeout:
		n.counts["stop-timeouts"]++
	case p.filled && (e.code == exitFull || p.brimful && (e.code == exitDamaged || e.code == exitFault)):
		n.counts["disk-full-ends"]++
	case e.code == exitLeak:
		n.troublef("%s: goroutines are left after the end (see its log)", p.name)
	default:
		n.troublef("%s, which was %v, ended by itself: %s (see its log)", p.name, was, e.text)
	}
	p.doomed = false
	if p.filled {
		n.freeDisk(p)
	}
	if p.wipe {
		p.wipe = false
		if err := wipe(p.dir); err != nil {
			n.troublef("wipe %s: %v", p.name, err)
		}
	}
	if p.startAt.IsZero() {
		p.startAt = time.Now().Add(500 * time.Millisecond)
	}
	n.later(time.Until(p.startAt)+time.Millisecond, func() { n.revive(p) })
}

func (n *nemesis) freeDisk(p *process) {
	p.filled = false
	n.notef("the disk of %s has room again", p.name)
	if err := p.disk.free(); err != nil {
		n.troublef("free the disk of %s: %v", p.name, err)
	}
}

// stop asks a process to end. One that does not is made to show its
// goroutines.
func (n *nemesis) stop(p *process) {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return // it has just ended
	}
	p.status = stopping
	cmd := p.cmd
	n.later(endTime, func() {
		if p.cmd != cmd {
			return
		}
		n.stuck = append(n.stuck, fmt.Sprintf("%s did not end within %v of being asked to", p.name, endTime))
		n.notef("STUCK: %s does not end", p.name)
		n.quit(p)
	})
}

// quit makes a process print its goroutines and end.
func (n *nemesis) quit(p *process) {
	p.doomed = true
	_ = p.signal(syscall.SIGCONT)
	_ = p.signal(syscall.SIGQUIT)
	cmd := p.cmd
	n.later(5*time.Second, func() {
		if p.cmd == cmd && cmd != nil {
			_ = p.signal(syscall.SIGKILL)
		}
	})
}

func (n *nemesis) kill(p *process, restart time.Duration) {
	p.doomed, p.startAt = true, time.Now().Add(restart)
	_ = p.signal(syscall.SIGKILL) // it may just have ended
}

// attack runs a schedule to its end, or to that of ctx.
func (n *nemesis) attack(ctx context.Context, faults []fault) {
	from := time.Now()
	end := time.NewTimer(n.cfg.Duration)
	defer end.Stop()
	for _, f := range faults {
		select {
		case <-time.After(time.Until(from.Add(f.At))):
			n.ask(func() { n.hit(f) })
		case <-ctx.Done():
			return
		}
	}
	select {
	case <-end.C:
	case <-ctx.Done():
	}
}

// heal makes everything good at once, and waits for the nodes.
func (n *nemesis) heal(ctx context.Context) error {
	n.ask(func() {
		n.notef("heal")
		n.calm = true
		for node := range n.touched {
			n.clearProxy(node)
		}
		if n.nodeDown >= 0 {
			n.launchNode()
		}
		for _, p := range n.fleet {
			if p.filled && p.status == down {
				n.freeDisk(p)
			}
			if p.status == paused {
				n.resume(p)
			}
			if p.status == down {
				p.startAt = time.Time{}
				n.revive(p)
			}
		}
	})
	n.helper.Wait()
	return n.brokers.whole(ctx)
}

// stopAll ends the fleet and waits.
func (n *nemesis) stopAll(ctx context.Context) error {
	n.ask(func() {
		n.notef("stop all")
		for _, p := range n.fleet {
			p.member = false
			if p.status == running {
				n.stop(p)
			}
		}
	})
	for {
		left := 0
		n.ask(func() {
			for _, p := range n.fleet {
				if p.status != down {
					left++
				}
			}
		})
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// dumpGoroutines ends all processes with their stacks in their logs.
func (n *nemesis) dumpGoroutines() {
	n.ask(func() {
		for _, p := range n.fleet {
			p.member = false
			if p.status != down {
				n.quit(p)
			}
		}
	})
	time.Sleep(6 * time.Second) // until they have ended, or were killed
}

// launch makes the fleet that a run begins with.
func (n *nemesis) launch() (err error) {
	if err := os.MkdirAll(n.cfg.Dir, 0o700); err != nil {
		return err
	}
	go n.run() // ends with close, which waits
	n.ask(func() {
		for range n.cfg.Processes {
			if err == nil {
				err = n.addProcess()
			}
		}
	})
	return err
}
