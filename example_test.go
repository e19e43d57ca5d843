package reka_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
)

// printer is a part of a service: it works until its context ends.
type printer string

func (p printer) Run(ctx context.Context) error {
	<-ctx.Done()
	fmt.Println(p, "drained")
	return nil
}

// What is listed first may be used by what is listed later until that has
// ended.
func ExampleRun() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	stop() // somebody pressed Ctrl-C
	err := reka.Run(ctx, printer("view"), printer("processor"))
	fmt.Println(err)
	// Output:
	// processor drained
	// view drained
	// <nil>
}

// Topics are declared once, as package variables.
func ExampleGroupTable() {
	counts := reka.GroupTable("click-counter", codec.Int64())
	fmt.Println(counts.Name())
	// Output: click-counter-table
}
