package main

import (
	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
)

// Order is something bought, Customer who buys; the key of both is the
// customer's id.
type (
	Order struct {
		Cents int64 `json:"cents"`
	}
	Customer struct {
		Name     string `json:"name"`
		Discount int64  `json:"discount"` // percent
	}
)

// Bill is what a customer owes.
type Bill struct {
	Name   string `json:"name"`
	Orders int    `json:"orders"`
	Cents  int64  `json:"cents"`
}

// The topics of the example. Orders and Customers are joined, so they need
// the same number of partitions.
var (
	Orders    = reka.NewStream("shop-orders", codec.JSON[Order]())
	Customers = reka.NewTable("shop-customers", codec.JSON[Customer]())
	Bills     = reka.GroupTable("shop-billing", codec.JSON[Bill]())
)

func billing() (*processor.Graph, error) {
	customers, bills := processor.Join(Customers), processor.Persist(Bills)
	return processor.NewGraph("shop-billing", customers, bills,
		processor.Input(Orders, func(ctx *processor.Context, o Order) error {
			customer, known := customers.Get(ctx)
			if !known {
				customer.Name = "customer " + ctx.Key()
			}
			bill, _ := bills.Get(ctx)
			bill.Name = customer.Name
			bill.Orders++
			bill.Cents += o.Cents * (100 - customer.Discount) / 100
			bills.Set(ctx, bill)
			return nil
		}))
}
