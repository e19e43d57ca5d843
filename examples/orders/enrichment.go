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

// Order is something bought: its key is the customer's id, as that of
// Customer. The key of a Product is its own id.
type (
	Order struct {
		Product string `json:"product"`
		Pieces  int64  `json:"pieces"`
	}
	Customer struct {
		Name string `json:"name"`
		City string `json:"city"`
	}
	Product struct {
		Title string `json:"title"`
		Cents int64  `json:"cents"` // a piece
	}
)

// Delivery is an order with all that is needed to deliver it.
type Delivery struct {
	Name  string `json:"name"`
	City  string `json:"city"`
	Title string `json:"title"`
	Cents int64  `json:"cents"`
}

// The topics of the example. Orders and Customers need the same number of
// partitions, Products may have any.
var (
	Orders    = reka.NewStream("orders", codec.JSON[Order]())
	Customers = reka.NewTable("orders-customers", codec.JSON[Customer]())
	Products  = reka.NewTable("orders-products", codec.JSON[Product]())
	Enriched  = reka.NewStream("orders-enriched", codec.JSON[Delivery]())
)

// addressed is an order on its way: with its customer, without its product.
type addressed struct {
	Order
	Customer
}

// enrichment joins an order with its customer as of the order's own time, also
// if it comes up to an hour late, and with its product as it is now. Orders of
// unknown customers go on, those of unknown products do not.
func enrichment() (*processor.Graph, error) {
	b := stream.NewBuilder("orders-enrichment")
	customers := stream.FromTable(b, Customers, stream.Versioned(time.Hour), stream.Named("customers"))
	products := stream.Global(b, Products)
	known := stream.LeftJoinTable(stream.From(b, Orders), customers, address)
	stream.JoinGlobal(known, products, itsProduct, deliver).To(Enriched)
	return b.Graph()
}

func address(id string, o Order, c *Customer) addressed {
	if c == nil {
		return addressed{o, Customer{Name: "customer " + id, City: "unknown"}}
	}
	return addressed{o, *c}
}

func itsProduct(_ string, o addressed) (string, bool) { return o.Product, o.Product != "" }

func deliver(_ string, o addressed, p Product) Delivery {
	return Delivery{Name: o.Name, City: o.City, Title: p.Title, Cents: o.Pieces * p.Cents}
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := enrichment()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
