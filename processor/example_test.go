package processor_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage/badgerstore"
)

// A processor that counts words and tells every tenth of each.
func Example() {
	var (
		lines = reka.NewStream("lines", codec.String())
		tenth = reka.NewStream("tenths", codec.Int64())
		table = reka.GroupTable("word-count", codec.Int64())
	)
	loop := processor.Loop(codec.Bool())
	n, out := processor.Persist(table), processor.Output(tenth)
	graph, err := processor.NewGraph("word-count", n, out,
		processor.Input(lines, func(ctx *processor.Context, line string) error {
			for word := range strings.FieldsSeq(line) {
				loop.Emit(ctx, word, true) // to the partition of the word
			}
			return nil
		}),
		loop.On(func(ctx *processor.Context, _ bool) error {
			v, _ := n.Get(ctx)
			n.Set(ctx, v+1)
			if (v+1)%10 == 0 {
				out.Emit(ctx, ctx.Key(), v+1)
			}
			return nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	client, err := kafka.NewClient([]string{"localhost:9092"})
	if err != nil {
		log.Fatal(err)
	}
	p, err := processor.New(client, graph, processor.WithStorage(badgerstore.In("state")))
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// Records that cannot be decoded go to a topic of their own; a callback that
// fails is repeated, and its record skipped if that does not help.
func ExampleOnError() {
	orders := reka.NewStream("orders", codec.JSON[struct{ Amount int }]())
	graph, err := processor.NewGraph("billing",
		processor.Input(orders, func(ctx *processor.Context, o struct{ Amount int }) error {
			return bill(ctx, ctx.Key(), o.Amount)
		}),
		processor.OnError(processor.Decode, processor.DeadLetters("orders-dead")),
		processor.OnError(processor.Process, processor.Retry(5, 100*time.Millisecond, processor.SkipAndCount)))
	fmt.Println(graph.Inputs(), err)
	// Output: [orders] <nil>
}

func bill(context.Context, string, int) error { return nil }
