package main

import (
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/stream"
)

// Click is one on an advertisement, Purchase what somebody has paid, Outcome
// what became of a click; the key of all is the user.
type (
	Click struct {
		Ad string `json:"ad"`
	}
	Purchase struct {
		Cents int64 `json:"cents"`
	}
	Outcome struct {
		Ad    string `json:"ad"`
		Cents int64  `json:"cents,omitempty"` // 0: no purchase
	}
)

// The topics of the example. Clicks and Purchases are joined, so they need the
// same number of partitions.
var (
	Clicks        = reka.NewStream("shop-clicks", codec.JSON[Click]())
	Purchases     = reka.NewStream("shop-purchases", codec.JSON[Purchase]())
	Sales         = reka.NewStream("shop-clicks-sold", codec.JSON[Outcome]())
	Lost          = reka.NewStream("shop-clicks-lost", codec.JSON[Outcome]())
	LatePurchases = reka.NewStream("shop-purchases-late", codec.JSON[Purchase]())
)

// A purchase belongs to the clicks of the half hour before it. Either may be
// five minutes late.
var halfAnHour = stream.Between(0, 30*time.Minute, 5*time.Minute)

func attribution() (*processor.Graph, error) {
	b := stream.NewBuilder("shop-attribution")
	outcomes := stream.LeftJoin(stream.From(b, Clicks), stream.From(b, Purchases), halfAnHour, outcome,
		stream.Named("clicks-and-purchases"), stream.LateRight(LatePurchases))
	ways := outcomes.Split(stream.Way[Outcome]{Name: "sold", Take: sold})
	ways.Way("sold").To(Sales)
	ways.Default().To(Lost)
	return b.Graph()
}

func outcome(_ string, c Click, p *Purchase) Outcome {
	if p == nil {
		return Outcome{Ad: c.Ad}
	}
	return Outcome{Ad: c.Ad, Cents: p.Cents}
}

func sold(_ string, o Outcome) bool { return o.Cents > 0 }

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := attribution()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
