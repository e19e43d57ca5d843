package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
)

func TestOrdersKnowTheirCustomersAndProducts(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(4))
	tt.CreateTopic(Products.Name(), 2, "cleanup.policy", "compact") // not those of the orders
	orders, customers, products := tester.Input(tt, Orders), tester.Input(tt, Customers), tester.Input(tt, Products)
	enriched := tester.Output(tt, Enriched)
	nine := time.Date(2024, 1, 1, 9, 0, 0, 0, time.UTC)
	at := func(minute int) reka.EmitOption { return reka.At(nine.Add(time.Duration(minute) * time.Minute)) }

	products.Send("p1", Product{"shoes", 4_900}, at(0))
	products.Send("p2", Product{"hat", 1_500}, at(0))
	customers.Send("7", Customer{"Ada", "London"}, at(0))
	customers.Send("7", Customer{"Ada", "Paris"}, at(20))
	customers.Send("8", Customer{"Bob", "Rome"}, at(0))
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) })
	news := func(want ...string) {
		t.Helper()
		var got []string
		for {
			r, ok := enriched.Next()
			if !ok {
				break
			}
			v := r.Value
			got = append(got, fmt.Sprintf("%s: %s, %s, %s, %d", r.Key, v.Name, v.City, v.Title, v.Cents))
		}
		if !slices.Equal(got, want) {
			t.Errorf("\n got %q\nwant %q", got, want)
		}
	}

	orders.Send("7", Order{"p1", 1}, at(30))
	news("7: Ada, Paris, shoes, 4900")
	orders.Send("7", Order{"p1", 2}, at(10)) // late: she lived in London then
	news("7: Ada, London, shoes, 9800")
	orders.Send("8", Order{"p2", 3}, at(31))
	news("8: Bob, Rome, hat, 4500")
	orders.Send("9", Order{"p2", 1}, at(32)) // nobody knows this customer
	news("9: customer 9, unknown, hat, 1500")
	orders.Send("8", Order{"p3", 1}, at(33)) // nor anybody this product
	orders.Send("8", Order{"", 1}, at(34))
	news()

	customers.Delete("8", at(40))
	products.Send("p2", Product{"hat", 1_000}, at(99)) // global: whatever its time
	tt.Settle()
	app.Crash()
	app.Restart()
	news() // tables alone make nothing
	orders.Send("8", Order{"p2", 1}, at(41))
	news("8: customer 8, unknown, hat, 1000")
	orders.Send("8", Order{"p2", 1}, at(39))
	news("8: Bob, Rome, hat, 1000")
}
