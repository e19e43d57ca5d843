package processor_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/rekastream/reka/codec"
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
		for i := range chaosKeys { // whoever has something to find out finds it out now
			c.order(key(i))
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
	c.checkStores("sum", c.withLedger(totals))
	c.checkViews(tallies, totals)
	c.checkSeen()
	c.checkOrder()
	c.checkHits()
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

// rows returns the rows of a topic of 64-bit numbers.
func (c *chaos) rows(topic string) map[string]int64 {
	rows := map[string]int64{}
	for p := range int32(chaosPartitions) {
		for _, r := range c.tt.Raw(topic, p) {
			if r.Value == nil {
				delete(rows, string(r.Key))
				continue
			}
			v, err := codec.Int64().Decode(r.Value)
			if err != nil {
				c.t.Errorf("%s/%d@%d: %v", topic, p, r.Offset, err)
			}
			rows[string(r.Key)] = v
		}
	}
	return rows
}

// withLedger returns totals with the rows of the ledger.
func (c *chaos) withLedger(totals map[string]string) map[string]string {
	all := maps.Clone(totals)
	for k, v := range c.rows("sum-ledger-changelog") {
		all[k] = fmt.Sprint(v)
	}
	return all
}

// checkSeen checks what went through the loop, and that the ledger holds the
// last changes of each key and no others.
func (c *chaos) checkSeen() {
	seen, ledger := c.rows("tally-seen-changelog"), c.rows("sum-ledger-changelog")
	for k, n := range c.sent {
		for v := int64(1); v <= n; v++ {
			if _, ok := seen[fmt.Sprintf("loop-%s/%d", k, v)]; v%5 == 0 && !ok {
				c.t.Errorf("loop of %s has lost %d", k, v)
			}
			// A change that is repeated late brings its row back.
			if _, ok := ledger[fmt.Sprintf("%s/%d", k, v)]; ok != (v > n-ledgerRows) && (!ok || c.terms.exactOutputs("tally")) {
				c.t.Errorf("ledger of %s at %d of %d: %t", k, v, n, ok)
			}
		}
	}
}

// checkOrder checks that outputs of a key went forward, but for repeats, and
// that there are none of these exactly once.
func (c *chaos) checkOrder() {
	highest := map[string]int64{}
	for _, r := range tester.Output(c.tt, changes).All() {
		if r.Value > highest[r.Key]+1 {
			c.t.Errorf("change %d of %s at %d/%d comes after %d", r.Value, r.Key, r.Partition, r.Offset, highest[r.Key])
		}
		if r.Value <= highest[r.Key] && c.terms.exactOutputs("tally") {
			c.t.Errorf("change %d of %s at %d/%d is a repeat: it has come to %d", r.Value, r.Key, r.Partition, r.Offset, highest[r.Key])
		}
		highest[r.Key] = max(highest[r.Key], r.Value)
	}
	if !maps.Equal(highest, c.sent) {
		c.t.Errorf("changes have come to %v, sent were %v", highest, c.sent)
	}
}

// checkHits checks that each record of the changes was counted, and once where
// state is exact.
func (c *chaos) checkHits() {
	want := map[string]int64{}
	for _, r := range tester.Output(c.tt, changes).All() {
		want[r.Key]++
	}
	got := c.rows("sum-hits-changelog")
	for k, n := range want {
		if got[k] < n || got[k] > n && c.terms.exactState("sum") {
			c.t.Errorf("%d changes of %s were counted %d times", n, k, got[k])
		}
	}
}
