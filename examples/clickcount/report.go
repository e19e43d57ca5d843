package main

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/rekastream/reka/processor"
)

// report is what the counter process tells its parent, a line of JSON each.
type report struct {
	Status     string            `json:"status"`
	Partitions []partitionReport `json:"partitions"`
}

type partitionReport struct {
	Partition int32  `json:"partition"`
	State     string `json:"state"`
	Position  int64  `json:"position"` // next click to count
}

func reportOf(s processor.Stats) report {
	r := report{Status: s.Status.String()}
	for _, p := range s.Partitions {
		position := int64(0)
		for _, in := range p.Inputs {
			position = in.Position
		}
		r.Partitions = append(r.Partitions, partitionReport{p.Partition, p.State, position})
	}
	return r
}

// reporter writes reports until its context ends or nobody reads them. It is
// a reka.Runner.
type reporter struct {
	processor *processor.Processor
	out       io.Writer
}

func (r *reporter) Run(ctx context.Context) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	lines := json.NewEncoder(r.out)
	for {
		if err := lines.Encode(reportOf(r.processor.Stats())); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
