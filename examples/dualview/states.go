package main

import (
	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/stream"
)

// The topics of the example. The value of a record in Machines is a state, its
// key the machine; a machine that is taken away is a record without a value.
// The key of a count is the state.
var (
	Machines = reka.NewTable("machines", codec.String())
	Entered  = reka.NewTable("machine-states-entered", codec.Int64Text())
	Now      = reka.NewTable("machine-states-now", codec.Int64Text())
	Broken   = reka.NewStream("machines-broken", codec.String())
)

func counting() (*processor.Graph, error) {
	b := stream.NewBuilder("machine-states")

	// As a stream: counts only grow.
	stream.From(b, Machines).
		GroupBy(state, stream.Named("entered-by-state")).
		Count(stream.Named("entered")).
		To(Entered)

	// As a table: a machine that enters a state leaves another one.
	machines := stream.FromTable(b, Machines, stream.Named("machines"))
	stream.GroupTable(machines, byState, stream.Named("now-by-state"), stream.WithCodec(codec.String())).
		Count(stream.Named("now")).
		To(Now)

	// And back: the changes of a table are a stream. This table has the
	// machines that are broken; one that is deleted from it is whole again, or
	// taken away.
	broken := machines.Filter(isBroken)
	stream.Changes(broken).To(Broken)
	return b.Graph()
}

func state(_, s string) string             { return s }
func byState(_, s string) (string, string) { return s, s }
func isBroken(_, s string) bool            { return s == "broken" }

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := counting()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
