package processor_test

import (
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// run starts an instance with one processor of the given edges, made anew at
// each start.
func run(tt *tester.Tester, name string, edges func() []processor.Edge, opts ...processor.Option) *tester.Instance {
	return tt.Start(name, func(i *tester.Instance) ([]reka.Runner, error) {
		p, err := build(i, edges(), opts...)
		return []reka.Runner{p}, err
	})
}

// build makes a processor of group "g".
func build(i *tester.Instance, edges []processor.Edge, opts ...processor.Option) (*processor.Processor, error) {
	g, err := processor.NewGraph("g", edges...)
	if err != nil {
		return nil, err
	}
	return processor.New(i.Client(), g, append([]processor.Option{processor.WithStorage(i.Storage())}, opts...)...)
}

// equal fails the test unless got is want.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
