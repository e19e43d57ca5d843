package main

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/examples/protobuf/sensorpb"
	"github.com/rekastream/reka/tester"
)

func TestRangeHoldsColdestAndWarmestReading(t *testing.T) {
	tt := tester.New(t)
	in := tester.Input(tt, Readings)
	tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) })

	for _, celsius := range []float64{4, -7.5, 21} {
		in.Send("roof", &sensorpb.Reading{Celsius: celsius})
	}
	in.Send("cellar", &sensorpb.Reading{}) // zero degrees: an encoding of no bytes is a reading

	rows := tester.Table(tt, Ranges)
	for sensor, want := range map[string]*sensorpb.Range{
		"roof":   {MinCelsius: -7.5, MaxCelsius: 21, Readings: 3},
		"cellar": {Readings: 1},
	} {
		if got, ok := rows.Get(sensor); !ok || !proto.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", sensor, got, ok, want)
		}
	}
}
