package main

import (
	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec/protocodec"
	"github.com/rekastream/reka/examples/protobuf/sensorpb"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
)

// The topics of the example. The values are pointers to messages.
var (
	Readings = reka.NewStream("sensor-readings", protocodec.Proto[sensorpb.Reading]())
	Ranges   = reka.GroupTable("sensor-ranges", protocodec.Proto[sensorpb.Range]())
)

func ranges() (*processor.Graph, error) {
	rows := processor.Persist(Ranges)
	return processor.NewGraph("sensor-ranges", rows,
		processor.Input(Readings, func(ctx *processor.Context, r *sensorpb.Reading) error {
			row, known := rows.Get(ctx)
			if !known {
				row = &sensorpb.Range{MinCelsius: r.Celsius, MaxCelsius: r.Celsius}
			}
			row.MinCelsius = min(row.MinCelsius, r.Celsius)
			row.MaxCelsius = max(row.MaxCelsius, r.Celsius)
			row.Readings++
			rows.Set(ctx, row)
			return nil
		}))
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := ranges()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
