package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/rekastream/reka/processor"
)

// dump is what a process shows of itself.
type dump struct {
	View   map[string]row     `json:"view"`  // tally's table
	Tally  map[int32]ownedRow `json:"tally"` // by partition that it owns
	Second map[int32]ownedRow `json:"second"`
}

// ownedRow are the rows of one partition as its owner sees them.
type ownedRow map[string]row

// rowsSeen are the rows that a visitor meets, in several partitions at once.
type rowsSeen struct {
	mu   sync.Mutex
	rows map[int32]ownedRow // guarded by mu
}

func (s *rowsSeen) add(ctx *processor.Context, v row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := ctx.Partition()
	if s.rows[p] == nil {
		s.rows[p] = ownedRow{}
	}
	s.rows[p][ctx.Key()] = v
	return nil
}

// dump writes what there is to a file, which appears when it is complete.
func (in *instance) dump(ctx context.Context, file string) error {
	d := dump{View: map[string]row{}}
	for r, err := range in.view.All() {
		if err != nil {
			return err
		}
		d.View[r.Key] = r.Value
	}
	var err error
	if d.Tally, err = visit(ctx, in.tally, in.tallyRows); err != nil {
		return err
	}
	if d.Second, err = visit(ctx, in.second, in.secondRows); err != nil {
		return err
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".part", b, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

func visit(ctx context.Context, p *processor.Processor, v *processor.Visits[*rowsSeen]) (map[int32]ownedRow, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	seen := &rowsSeen{rows: map[int32]ownedRow{}}
	for _, part := range p.Stats().Partitions {
		if part.State != "running" {
			return nil, fmt.Errorf("partition %d is %s", part.Partition, part.State)
		}
		seen.rows[part.Partition] = ownedRow{}
	}
	_, err := v.Run(ctx, p, seen)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	return seen.rows, err
}

// engineFrame is a function of the library, not of its tests.
var engineFrame = regexp.MustCompile(`(?m)^(created by )?github\.com/rekastream/reka(/(internal|kafka|processor|view|storage|emitter)[/.]|\.)`)

// leftGoroutines returns the stacks of goroutines that run the engine's code,
// as soon as there are none, or those that are there when the time is over.
func leftGoroutines(wait time.Duration) []string {
	deadline := time.Now().Add(wait)
	for {
		buf := make([]byte, 4<<20)
		stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		var left []string
		for _, s := range stacks {
			if engineFrame.MatchString(s) {
				left = append(left, s)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(50 * time.Millisecond)
	}
}
