package main

import (
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// Report is one of something that shook; the key is the region, the time that
// of the event.
type Report struct {
	Type      string  `json:"type"` // earthquake, explosion, quarry blast
	Magnitude float64 `json:"magnitude"`
	Place     string  `json:"place"`
}

// Activity is that of a region in a quarter of a day.
type Activity struct {
	Quakes    int     `json:"quakes"`
	Strongest float64 `json:"strongest"`
	Place     string  `json:"place"` // of the strongest; the first one reported, if they are several
}

// quarter of a day. Most reports are revised within hours, some after days:
// those that come more than two days late are left out.
var quarter = window.Tumbling(6*time.Hour, 48*time.Hour)

// The topics of the example.
var (
	Reports  = reka.NewStream("earthquake-reports", codec.JSON[Report]())
	Quarters = reka.NewWindowTable("earthquake-quarters", quarter, codec.JSON[Activity]())
	Late     = reka.NewStream("earthquake-reports-late", codec.JSON[Report]())
)

func watching() (*processor.Graph, error) {
	b := stream.NewBuilder("earthquakes")
	quakes := stream.From(b, Reports).Filter(natural).GroupByKey().Windowed(quarter).Late(Late)
	stream.AggregateWindows(quakes, stream.Aggregator[Report, Activity]{Add: add},
		stream.Named("activity"), stream.WithCodec(Quarters.Codec())).
		OnClose().
		To(Quarters)
	return b.Graph()
}

func natural(_ string, r Report) bool { return r.Type == "earthquake" }

func add(_ string, r Report, a Activity) Activity {
	if a.Quakes == 0 || r.Magnitude > a.Strongest {
		a.Strongest, a.Place = r.Magnitude, r.Place
	}
	a.Quakes++
	return a
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := watching()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p, &replay{client}}, err
}
