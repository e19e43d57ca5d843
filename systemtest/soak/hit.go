package soak

import (
	"context"
	"syscall"
	"time"
)

// hit does what a fault says to whoever can be hit now.
func (n *nemesis) hit(f fault) {
	if n.calm {
		return
	}
	switch f.Kind {
	case faultNode, faultLeaders:
		n.hitCluster(f)
	case faultCut, faultSilence, faultDelay:
		n.hitProxy(f)
	case faultAdd:
		n.hitSize(f)
	default:
		n.hitProcess(f)
	}
}

// skip notes a fault that could not happen.
func (n *nemesis) skip(f fault, why string) {
	n.counts["skipped"]++
	n.notef("skip %s: %s", f.Kind, why)
}

// candidates are the processes that run undisturbed.
func (n *nemesis) candidates(accept func(*process) bool) []*process {
	var out []*process
	for _, p := range n.fleet {
		if p.member && p.status == running && !p.doomed && !p.filled && (accept == nil || accept(p)) {
			out = append(out, p)
		}
	}
	return out
}

func (n *nemesis) hitProcess(f fault) {
	var accept func(*process) bool
	if f.Kind == faultFill {
		accept = func(p *process) bool { return p.disk != nil && time.Since(p.since) > 3*time.Second }
	}
	able := n.candidates(accept)
	if len(able) == 0 || f.Kind == faultRemove && len(able) < 2 {
		n.skip(f, "no process can be hit")
		return
	}
	p := able[int(f.Pick)%len(able)]
	n.counts[f.Kind]++
	n.notef("%s %s for %v", f.Kind, p.name, f.For)
	switch f.Kind {
	case faultKill:
		n.kill(p, f.For)
	case faultWipe:
		p.wipe = true
		n.kill(p, f.For)
	case faultPause:
		n.pause(p, f.For)
	case faultRestart:
		n.stop(p)
		p.startAt = time.Now().Add(f.For)
	case faultRemove:
		p.member = false
		n.stop(p)
	case faultFill:
		n.fill(p, f)
	}
}

func (n *nemesis) pause(p *process, d time.Duration) {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return // it has just ended
	}
	p.status = paused
	cmd := p.cmd
	n.later(d, func() {
		if p.cmd == cmd && p.status == paused {
			n.resume(p)
		}
	})
}

func (n *nemesis) resume(p *process) {
	n.notef("resume %s", p.name)
	p.status = running
	_ = p.signal(syscall.SIGCONT) // it may have been ended
}

// fill fills a disk, to the last byte or but for a few MiB.
func (n *nemesis) fill(p *process, f fault) {
	p.filled, p.brimful = true, f.Pick/8%2 == 0
	leave := 5 // MiB: less than a store wants, more than it needs to end
	if p.brimful {
		leave = 0
	}
	if err := p.disk.fill(leave); err != nil {
		n.troublef("fill the disk of %s: %v", p.name, err)
		n.freeDisk(p)
		return
	}
	cmd := p.cmd
	n.later(f.For, func() {
		if p.cmd != cmd || !p.filled {
			return
		}
		n.troublef("%s has not noticed its full disk within %v", p.name, f.For)
		n.freeDisk(p)
	})
}

// hitSize brings a process back that was removed, or adds one.
func (n *nemesis) hitSize(f fault) {
	for _, p := range n.fleet {
		if !p.member && p.status == down {
			p.member, p.startAt = true, time.Time{}
			n.counts[f.Kind]++
			n.notef("add %s again", p.name)
			n.revive(p)
			return
		}
	}
	if len(n.fleet) >= n.cfg.Processes+maxExtra {
		n.skip(f, "there are enough processes")
		return
	}
	n.counts[f.Kind]++
	if err := n.addProcess(); err != nil {
		n.troublef("%v", err)
	}
}

// hitCluster kills a node or moves leaders. One thing at a time: the next one
// waits until all replicas are in sync.
func (n *nemesis) hitCluster(f fault) {
	if n.nodeBusy {
		n.skip(f, "the cluster is not whole")
		return
	}
	n.nodeBusy = true
	n.counts[f.Kind]++
	if f.Kind == faultLeaders {
		n.notef("leaders move")
		n.help(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			moved, err := n.brokers.moveLeaders(ctx, f.Pick)
			n.ask(func() {
				n.notef("%d leaders moved: %v", moved, err)
				n.nodeBusy = false
			})
		})
		return
	}
	node := int(f.Pick % 3)
	n.notef("kill node %d for %v", node, f.For)
	if err := n.cluster.Crash(node); err != nil {
		n.notef("kill node %d: %v", node, err)
	}
	n.nodeDown = node
	n.later(f.For, func() {
		if n.nodeDown == node {
			n.launchNode()
		}
	})
}

// launchNode starts the node that is down, and waits aside until its replicas
// are in sync.
func (n *nemesis) launchNode() {
	node := n.nodeDown
	n.nodeDown = -1
	n.notef("start node %d", node)
	if err := n.cluster.Launch(node); err != nil {
		n.troublef("start node %d: %v", node, err)
		return
	}
	n.help(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		defer cancel()
		err := n.cluster.Ready()
		if err == nil {
			err = n.brokers.whole(ctx)
		}
		n.ask(func() {
			n.notef("node %d is back: %v", node, err)
			n.nodeBusy = false
		})
	})
}

// help runs what waits for nodes beside the owner's goroutine. It ends by
// itself, and close waits.
func (n *nemesis) help(f func()) {
	n.helper.Go(f)
}

// hitProxy disturbs the connections to one node, now and then to all.
func (n *nemesis) hitProxy(f fault) {
	nodes := []int{int(f.Pick % 3)}
	if f.Pick/3%8 == 0 {
		nodes = []int{0, 1, 2}
	}
	for _, node := range nodes {
		if n.touched[node] {
			n.skip(f, "the connections are disturbed already")
			return
		}
	}
	n.counts[f.Kind]++
	n.notef("%s connections to nodes %v for %v", f.Kind, nodes, f.For)
	for _, node := range nodes {
		n.touched[node] = true
		var err error
		switch f.Kind {
		case faultCut:
			n.proxies.cut(node)
		case faultSilence:
			err = n.proxies.silence(node)
		case faultDelay:
			err = n.proxies.delay(node, 50+int(f.Pick/24%1500))
		}
		if err != nil {
			n.notef("%v", err)
		}
		n.later(f.For, func() {
			if n.touched[node] {
				n.clearProxy(node)
			}
		})
	}
}

func (n *nemesis) clearProxy(node int) {
	delete(n.touched, node)
	n.notef("connections to node %d are clear", node)
	if err := n.proxies.clear(node); err != nil {
		n.notef("PROXY: %v", err)
	}
}
