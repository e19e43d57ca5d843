package emitter_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
)

// Orders is declared once and shared by all who write or read it.
var Orders = reka.NewStream("orders", codec.Int64())

func Example() {
	ctx := context.Background()
	client, err := kafka.NewClient([]string{"localhost:9092"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	e, err := emitter.New(client, Orders)
	if err != nil {
		log.Fatal(err)
	}
	for i := range int64(1000) {
		if _, err := e.Emit(ctx, fmt.Sprint("customer-", i%10), i); err != nil {
			log.Fatal(err)
		}
	}
	// Everything is written when Close returns nil.
	if err := e.Close(ctx); err != nil {
		log.Fatal(err)
	}
}

func ExampleEmitter_EmitSync() {
	ctx := context.Background()
	client, err := kafka.NewClient([]string{"localhost:9092"})
	if err != nil {
		log.Fatal(err)
	}
	e, err := emitter.New(client, Orders, emitter.WithHeader("service", []byte("shop")))
	if err != nil {
		log.Fatal(err)
	}
	at, err := e.EmitSync(ctx, "customer-1", 42, reka.WithHeader("trace", []byte("17")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("written to %s/%d at offset %d\n", at.Topic, at.Partition, at.Offset)
}

func ExampleResult_Then() {
	ctx := context.Background()
	client, err := kafka.NewClient([]string{"localhost:9092"})
	if err != nil {
		log.Fatal(err)
	}
	e, err := emitter.New(client, Orders)
	if err != nil {
		log.Fatal(err)
	}
	r, err := e.Emit(ctx, "customer-1", 42)
	if err != nil {
		log.Fatal(err) // the record was not accepted
	}
	r.Then(func(at emitter.Receipt, err error) {
		if err != nil {
			log.Print("the order is lost: ", err)
		}
	})
	if err := e.Flush(ctx); err != nil {
		log.Fatal(err)
	}
}
