package processor_test

import (
	"strings"
	"time"
)

// disturb does something to a node, or its group, in the middle of a
// transaction: its requests take long, and something happens before they
// arrive.
func (c *chaos) disturb(nd *node) {
	c.m.set([]string{"slow", "drag", "drag", "storm"}[c.rnd.IntN(4)], 30)
	c.send(1 + c.rnd.IntN(30))
	c.advance(time.Duration(1+c.rnd.IntN(2000)) * time.Millisecond)
	group := strings.TrimRight(nd.name, "0123456789")
	switch n := c.rnd.IntN(10); {
	case n < 4 && c.m.stalls:
		c.notef("expel %s", nd.name)
		c.tt.Expel(group, nd.Instance)
	case n < 6 && c.m.stalls:
		c.pause(nd)
		c.advance(time.Duration(8+c.rnd.IntN(8)) * time.Second)
	case n < 7:
		c.crash(nd)
		c.restart(nd)
	default:
		c.intrude(nd)
	}
	if c.rnd.IntN(2) == 0 {
		c.send(1 + c.rnd.IntN(5))
	}
	c.advance(time.Duration(1+c.rnd.IntN(2000)) * time.Millisecond)
}

// intrude lets somebody else initialise the transactional id of a node, as a
// fence order does that is late, or a former owner that is back.
func (c *chaos) intrude(nd *node) {
	id := c.m.transaction(nd.name)
	if id == "" {
		return
	}
	for range 1 + c.rnd.IntN(2) {
		stale := c.rnd.IntN(3) == 0
		err := c.tt.Initialise(id, stale)
		c.notef("intrude on %s, stale %t: %v", nd.name, stale, err)
		if c.rnd.IntN(2) == 0 {
			c.tt.Settle()
		}
	}
}

// blackout kills all processes at once. Most of the time they come back with
// empty disks.
func (c *chaos) blackout() {
	empty := c.rnd.IntN(4) > 0
	c.notef("blackout, empty %t", empty)
	for _, nd := range c.nodes {
		c.ended(nd)
		nd.paused = false
		nd.Instance.Crash()
	}
	if c.rnd.IntN(2) == 0 {
		c.advance(time.Duration(1+c.rnd.IntN(15000)) * time.Millisecond)
	}
	for _, nd := range c.nodes {
		c.m.forgive(nd.name)
		if empty {
			c.format(nd)
		}
		nd.Restart()
	}
}
