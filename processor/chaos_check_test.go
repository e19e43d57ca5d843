package processor_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/rekastream/reka/tester"
)

func (c *chaos) exists(topic string) bool {
	found, err := c.tt.Client().Driver().Admin().Topics(context.Background(), topic)
	if err != nil {
		c.t.Fatal(err)
	}
	_, ok := found[topic]
	return ok
}

// offsets checks that no committed offset has gone back.
func (c *chaos) offsets() {
	for _, g := range [][]string{{"tally", "orders", "tally-loop"}, {"sum", "changes", "prices"}} {
		for _, topic := range g[1:] {
			for p := range int32(chaosPartitions) {
				place := fmt.Sprint(g[0], " ", topic, "/", p)
				now := c.tt.Committed(g[0], topic, p)
				if was, ok := c.before[place]; ok && now < was {
					c.t.Errorf("committed offset of %s went back from %d to %d", place, was, now)
				}
				c.before[place] = now
			}
		}
	}
}

// heal ends all trouble and lets everything catch up.
func (c *chaos) heal() {
	c.m.set("calm", 0)
	c.notef("heal")
	for range 3 {
		for _, nd := range c.nodes {
			if nd.paused {
				nd.Resume()
				nd.paused = false
			}
			c.revive(nd)
		}
		c.tt.Advance(time.Minute)
	}
	c.offsets()
}

// check compares what is there with what was sent.
func (c *chaos) check() {
	for _, s := range c.c.take() {
		c.t.Error(s)
	}
	for _, nd := range c.nodes {
		if !nd.ready() {
			c.t.Errorf("%s is not ready: %s", nd.name, nd.state())
		}
	}
	tallies, sums := tester.Table(c.tt, tallyTable).All(), tester.Table(c.tt, sumTable).All()
	totals := map[string]string{}
	for k, v := range sums {
		totals[k] = fmt.Sprint(v)
	}
	for k, want := range c.sent {
		if _, n := tallyRow(tallies[k]); n != want {
			c.t.Errorf("tally of %s is %q, want %d", k, tallies[k], want)
		}
		if sums[k] != want {
			c.t.Errorf("sum of %s is %d, want %d", k, sums[k], want)
		}
	}
	c.checkStores("tally", tallies)
	c.checkStores("sum", totals)
	c.checkViews(tallies, totals)
	c.checkSeen()
	c.checkOrder()
}

// checkStores compares the rows that the owners hold with the topic.
func (c *chaos) checkStores(group string, want map[string]string) {
	got := &seenRows{rows: map[string]string{}}
	for _, nd := range c.nodes {
		if strings.HasPrefix(nd.name, group) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			_, err := nd.visits.Run(ctx, nd.p, got)
			cancel()
			if err != nil {
				c.t.Errorf("visit of %s: %v", nd.name, err)
			}
		}
	}
	if !maps.Equal(got.rows, want) {
		c.t.Errorf("stores of %s hold %v, its topic %v", group, got.rows, want)
	}
}

func (c *chaos) checkViews(tallies, totals map[string]string) {
	got, sums := map[string]string{}, map[string]string{}
	for row, err := range c.nodes[0].tally.All() {
		if err != nil {
			c.t.Errorf("view of tally: %v", err)
		}
		got[row.Key] = row.Value
	}
	for row, err := range c.nodes[0].sum.All() {
		if err != nil {
			c.t.Errorf("view of sum: %v", err)
		}
		sums[row.Key] = fmt.Sprint(row.Value)
	}
	if !maps.Equal(got, tallies) || !maps.Equal(sums, totals) {
		c.t.Errorf("views hold %v and %v, topics %v and %v", got, sums, tallies, totals)
	}
}

// checkSeen checks what went through the loop and the further stores.
func (c *chaos) checkSeen() {
	rows := map[string]bool{}
	for p := range int32(chaosPartitions) {
		for _, topic := range []string{"tally-seen-changelog", "sum-ledger-changelog"} {
			for _, r := range c.tt.Raw(topic, p) {
				rows[topic+" "+string(r.Key)] = r.Value != nil
			}
		}
	}
	for k, n := range c.sent {
		for v := range n {
			if (v+1)%5 == 0 && !rows[fmt.Sprintf("tally-seen-changelog loop-%s/%d", k, v+1)] {
				c.t.Errorf("loop of %s has lost %d", k, v+1)
			}
			if !rows[fmt.Sprintf("sum-ledger-changelog %s/%d", k, v+1)] {
				c.t.Errorf("ledger of %s has lost %d", k, v+1)
			}
		}
	}
}

// checkOrder checks that outputs of a key went forward, but for repeats.
func (c *chaos) checkOrder() {
	highest := map[string]int64{}
	for _, r := range tester.Output(c.tt, changes).All() {
		if r.Value > highest[r.Key]+1 {
			c.t.Errorf("change %d of %s at %d/%d comes after %d", r.Value, r.Key, r.Partition, r.Offset, highest[r.Key])
		}
		highest[r.Key] = max(highest[r.Key], r.Value)
	}
}
