package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rekastream/reka/processor"
)

// partNames lists the parts in the order in which they run.
func partNames() []string {
	return []string{"consume", "pass", "zipf", "uniform", "exact-pass", "exact-count",
		"chain", "exact-chain", "tumbling", "hopping", "join", "left-join", "restore", "get", "latency", "latency-20", "latency-100"}
}

// all runs the chosen parts and prints the table.
func (b *bench) all(ctx context.Context) error {
	chosen := strings.Split(b.parts, ",")
	end := time.Now().Add(b.limit)
	var outcomes []outcome
	var failed error
	names := slices.DeleteFunc(partNames(), func(n string) bool { return !slices.Contains(chosen, n) })
	for i, name := range names {
		// What is left of the time is shared among the parts that are left.
		until := time.Now().Add(time.Until(end) / time.Duration(len(names)-i))
		p, err := b.part(ctx, name)
		if err == nil {
			var o outcome
			if o, err = p.hold(ctx, b.turns(name), until, b.profile); err == nil {
				outcomes = append(outcomes, o)
			}
		}
		if failed = err; err != nil {
			break
		}
	}
	printTable(os.Stdout, outcomes)
	if failed == nil && b.strict && slices.ContainsFunc(outcomes, func(o outcome) bool { return !o.reached() }) {
		failed = errors.New("a target was missed")
	}
	return failed
}

// turns: latencies are compared in five pairs whatever is said otherwise.
func (b *bench) turns(name string) int {
	if strings.HasPrefix(name, "latency") && !b.short {
		return max(b.reps, 5)
	}
	return b.reps
}

// part prepares a part: its topics are loaded when it begins.
func (b *bench) part(ctx context.Context, name string) (part, error) {
	n := b.records
	switch name {
	case "latency":
		return part{name: "latency in → out, p99, 10,000 records/s, at least once", unit: "ms", target: 1.5, atMost: true, contestants: []contestant{
			{"raw", b.latency(b.rawCopier)}, {"reka", b.latency(b.rekaCopier(atLeast()))},
		}}, nil
	case "latency-20", "latency-100":
		interval := 20 * time.Millisecond
		if name == "latency-100" {
			interval = 100 * time.Millisecond
		}
		return part{name: fmt.Sprintf("latency likewise, exactly once at %v", interval), unit: "ms", target: 1.5, atMost: true, contestants: []contestant{
			{"raw", b.latency(b.rawBatchCopier(interval))}, {"reka", b.latency(b.rekaCopier(exactly(processor.WithCommitInterval(interval))))},
		}}, nil
	case "uniform":
		topic, err := b.load(ctx, uniform, n, valueBytes)
		return part{name: "count, 1,000,000 keys uniform", unit: "records/s", target: 0.08, contestants: []contestant{
			{"raw", b.rawCount(topic, n)}, {"reka", b.rekaCount(topic, n, exactly())},
		}}, err
	}
	if p, ok, err := b.streamPart(ctx, name); ok {
		return p, err
	}
	topic, err := b.load(ctx, zipf, n, valueBytes)
	if err != nil {
		return part{}, err
	}
	consume := contestant{"raw", b.rawConsume(topic, n)}
	switch name {
	case "consume":
		return part{name: "consume", unit: "records/s", target: 0.5, contestants: []contestant{
			consume, {"franz-go", b.franzConsume(topic, n)}, {"reka", b.rekaConsume(topic, n)},
		}}, nil
	case "pass":
		return part{name: "consume → produce", unit: "records/s", target: 0.6, contestants: []contestant{
			{"raw", b.rawPass(topic, n)}, {"franz-go", b.franzPass(topic, n)}, {"reka", b.rekaPass(topic, n, atLeast())},
		}}, nil
	case "exact-pass":
		return part{name: "consume → produce, exactly once (raw: at least once)", unit: "records/s", target: 0.9, contestants: []contestant{
			{"raw", b.rekaPass(topic, n, atLeast())}, {"reka", b.rekaPass(topic, n, exactly())},
		}}, nil
	case "exact-count":
		return part{name: "count, zipf, exactly once (raw: at least once)", unit: "records/s", target: 0.9, contestants: []contestant{
			{"raw", b.rekaCount(topic, n, atLeast())}, {"reka", b.rekaCount(topic, n, exactly())},
		}}, nil
	case "zipf":
		return part{name: "count, 100,000 keys zipf 1.1", unit: "records/s", target: 0.25, contestants: []contestant{
			{"raw", b.rawCount(topic, n)}, {"reka", b.rekaCount(topic, n, exactly())},
		}}, nil
	case "restore":
		rows, err := b.load(ctx, each, b.rows, 8)
		return part{name: fmt.Sprintf("restore, %d rows (raw: consume)", b.rows), unit: "rows/s", target: 200_000. / 3_000_000, contestants: []contestant{
			consume, {"reka", b.rekaRestore(rows, b.rows)},
		}}, err
	}
	return part{name: "View.Get, 2 readers, 50,000 updates/s (raw: consume)", unit: "reads/s", target: 300_000. / 3_000_000, contestants: []contestant{
		consume, {"reka", b.viewGet()},
	}}, nil
}
