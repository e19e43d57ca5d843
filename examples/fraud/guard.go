package main

import (
	"slices"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
)

// Payment is one by a card, which is the key.
type Payment struct {
	Cents    int64 `json:"cents"`
	Declined bool  `json:"declined"`
}

// Alert says that somebody should look at a card.
type Alert struct {
	Declined int   `json:"declined"` // payments
	Cents    int64 `json:"cents"`    // that they would have been
}

// Card is what is remembered of one.
type Card struct {
	Declined []Attempt `json:"declined"` // within the last ten minutes, by time
	Alerted  bool      `json:"alerted"`
}

// Attempt is a payment that was declined.
type Attempt struct {
	At    time.Time `json:"at"`
	Cents int64     `json:"cents"`
}

// The topics of the example.
var (
	Payments = reka.NewStream("card-payments", codec.JSON[Payment]())
	Alerts   = reka.NewStream("card-alerts", codec.JSON[Alert]())
	Cards    = reka.GroupTable("card-guard", codec.JSON[Card]())
)

const (
	tooMany = 3
	recent  = 10 * time.Minute
	memory  = time.Hour
)

// guard keeps a row for each card with declined payments, and a timer that
// deletes it. The timer is in stream time, so that the same payments make the
// same alerts whenever they are read.
func guard() (*processor.Graph, error) {
	cards, alerts := processor.Persist(Cards), processor.Output(Alerts)
	forget := processor.Timer("forget", processor.StreamTime)
	return processor.NewGraph("card-guard", cards, alerts,
		forget.On(func(ctx *processor.Context, _ time.Time) error {
			cards.Delete(ctx)
			return nil
		}),
		processor.Input(Payments, func(ctx *processor.Context, p Payment) error {
			if !p.Declined {
				return nil
			}
			card, _ := cards.Get(ctx)
			card.add(Attempt{ctx.Time(), p.Cents})
			if len(card.Declined) >= tooMany && !card.Alerted {
				card.Alerted = true
				alerts.Emit(ctx, ctx.Key(), card.alert())
			}
			cards.Set(ctx, card)
			forget.Set(ctx, card.last().Add(memory)) // instead of what was set before
			return nil
		}))
}

// add puts an attempt in its place, for it may come out of order, and drops
// those that are too old.
func (c *Card) add(a Attempt) {
	c.Declined = append(c.Declined, a)
	slices.SortStableFunc(c.Declined, func(a, b Attempt) int { return a.At.Compare(b.At) })
	last := c.last()
	c.Declined = slices.DeleteFunc(c.Declined, func(a Attempt) bool { return last.Sub(a.At) > recent })
}

func (c *Card) last() time.Time { return c.Declined[len(c.Declined)-1].At }

func (c *Card) alert() Alert {
	a := Alert{Declined: len(c.Declined)}
	for _, d := range c.Declined {
		a.Cents += d.Cents
	}
	return a
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := guard()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
