package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
)

// TestClicksAndTheirPurchases runs on one partition, so that all users move
// one stream time.
func TestClicksAndTheirPurchases(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	clicks, purchases := tester.Input(tt, Clicks), tester.Input(tt, Purchases)
	sales, lost, late := tester.Output(tt, Sales), tester.Output(tt, Lost), tester.Output(tt, LatePurchases)
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) })
	noon := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes float64) reka.EmitOption {
		return reka.At(noon.Add(time.Duration(minutes * float64(time.Minute))))
	}

	clicks.Send("ada", Click{"shoes"}, at(0))
	clicks.Send("bob", Click{"hats"}, at(1))
	clicks.Send("ada", Click{"socks"}, at(20))
	purchases.Send("ada", Purchase{4_900}, at(30)) // of both clicks: half an hour is included
	purchases.Send("ada", Purchase{100}, at(30.5)) // of the second one only
	tt.Settle()
	app.Crash()
	purchases.Send("bob", Purchase{1_500}, at(31.5)) // half a minute too long
	app.Restart()
	purchases.Send("cyd", Purchase{700}, at(33)) // nobody clicked
	clicks.Send("cyd", Click{"hats"}, at(32))    // late, but in time; a purchase goes before
	clicks.Send("dan", Click{"shoes"}, at(33))
	wants(t, sales, "ada shoes 4900 at 30", "ada socks 4900 at 30", "ada socks 100 at 30.5", "cyd hats 700 at 33")
	wants(t, lost) // bob could still buy something, five minutes late

	purchases.Send("eve", Purchase{1}, at(60))
	wants(t, lost, "bob hats 0 at 1")
	purchases.Send("dan", Purchase{3_000}, at(24.9)) // no click that is still waited for
	purchases.Send("eve", Purchase{1}, at(120))
	wants(t, lost, "bob hats 0 at 1", "dan shoes 0 at 33")
	if got := late.All(); len(got) != 1 || got[0].Key != "dan" {
		t.Errorf("late purchases: %+v", got)
	}
	if sales.Len() != 4 {
		t.Errorf("%d sales", sales.Len())
	}
}

func wants(t *testing.T, out *tester.OutputTopic[Outcome], want ...string) {
	t.Helper()
	var got []string
	for _, r := range out.All() {
		minutes := r.Time.Sub(r.Time.Truncate(24*time.Hour)).Minutes() - 12*60
		got = append(got, fmt.Sprintf("%s %s %d at %v", r.Key, r.Value.Ad, r.Value.Cents, minutes))
	}
	if !slices.Equal(got, want) {
		t.Errorf("outcomes:\n got %q\nwant %q", got, want)
	}
}
