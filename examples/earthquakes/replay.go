package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
)

// quakes is an extract of public data, see NOTICE: a line for each report, in
// order of its last revision.
//
//go:embed quakes.csv
var quakes []byte

// event is a line of the file.
type event struct {
	region string
	at     time.Time
	report Report
}

func events() ([]event, error) {
	lines, err := csv.NewReader(bytes.NewReader(quakes)).ReadAll()
	if err != nil {
		return nil, err
	}
	var all []event
	for _, l := range lines[1:] { // time, updated, type, mag, place
		ms, err := strconv.ParseInt(l[0], 10, 64)
		mag, err2 := strconv.ParseFloat(l[3], 64)
		if err = errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("%q: %w", l, err)
		}
		all = append(all, event{region: regionOf(l[4]), at: time.UnixMilli(ms), report: Report{Type: l[2], Magnitude: mag, Place: l[4]}})
	}
	return all, nil
}

// regionOf is what stands behind the last comma of a place, in one spelling.
func regionOf(place string) string {
	region := place[strings.LastIndex(place, ",")+1:]
	switch region = strings.TrimSpace(region); region {
	case "CA":
		return "California"
	case "MX":
		return "Mexico"
	}
	return region
}

// replay emits the file once.
type replay struct{ client *kafka.Client }

// Run emits and waits until ctx ends.
func (r *replay) Run(ctx context.Context) error {
	all, err := events()
	if err != nil {
		return err
	}
	e, err := emitter.New(r.client, Reports)
	if err != nil {
		return err
	}
	for i := range all {
		if _, err := e.Emit(ctx, all[i].region, all[i].report, reka.At(all[i].at)); err != nil {
			return errors.Join(err, e.Close(ctx))
		}
	}
	err = e.Close(ctx)
	if err == nil {
		<-ctx.Done()
	}
	return err
}
