package main

import (
	"slices"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// Summary is a visit that has ended; the key is the user.
type Summary struct {
	Minutes float64  `json:"minutes"` // from the first click to the last one
	Pages   []string `json:"pages"`   // each once, by name
}

// visit is a session: half an hour without a click ends it, and clicks may be
// ten minutes late.
var visit = window.Session(30*time.Minute, 10*time.Minute)

// The topics of the example. The value of a click is the page, the key of
// everything the user.
var (
	Clicks = reka.NewStream("sessions-clicks", codec.String())
	Visits = reka.NewWindowTable("sessions-visits", visit, codec.JSON[[]string]())
	Ended  = reka.NewStream("sessions-ended", codec.JSON[Summary]())
)

func visiting() (*processor.Graph, error) {
	b := stream.NewBuilder("sessions")
	visits := stream.AggregateWindows(stream.From(b, Clicks).GroupByKey().Windowed(visit), pages(),
		stream.WithCodec(codec.JSON[[]string]()), stream.Named("visits"))
	visits.To(Visits)
	stream.MapValues(stream.Results(visits.OnClose()), summary).To(Ended)
	return b.Graph()
}

// pages is the set of pages of a visit, in order. A click can join two visits
// to one: so there is Merge.
func pages() stream.Aggregator[string, []string] {
	return stream.Aggregator[string, []string]{
		Add:   func(_, page string, seen []string) []string { return set(append(slices.Clone(seen), page)) },
		Merge: func(_ string, a, b []string) []string { return set(slices.Concat(a, b)) },
	}
}

func set(pages []string) []string {
	slices.Sort(pages)
	return slices.Compact(pages)
}

func summary(_ string, r stream.Result[[]string]) Summary {
	return Summary{Minutes: r.Window.EndTime().Sub(r.Window.StartTime()).Minutes(), Pages: r.Value}
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := visiting()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
