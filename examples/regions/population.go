package main

import (
	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/stream"
)

// Person is somebody who lives somewhere; the key is the name.
type Person struct {
	Region string `json:"region"`
	Age    int    `json:"age"`
}

// Population is that of a region, which is the key.
type Population struct {
	People int `json:"people"`
	Years  int `json:"years"` // of all of them
}

// The topics of the example.
var (
	People  = reka.NewTable("regions-people", codec.JSON[Person]())
	Regions = reka.NewTable("regions-population", codec.JSON[Population]())
)

// counting keeps the people of each region. People gets a name, and so a store
// of the group's own: what is subtracted is then always what was added.
func counting() (*processor.Graph, error) {
	b := stream.NewBuilder("regions")
	people := stream.FromTable(b, People, stream.Named("people"))
	byRegion := stream.GroupTable(people, region, stream.Named("by-region"), stream.WithCodec(codec.JSON[Person]()))
	stream.AggregateTable(byRegion, population(), stream.Named("population"), stream.WithCodec(Regions.Codec())).
		To(Regions)
	return b.Graph()
}

func region(_ string, p Person) (string, Person) { return p.Region, p }

func population() stream.Aggregator[Person, Population] {
	return stream.Aggregator[Person, Population]{
		Add: func(_ string, p Person, all Population) Population {
			return Population{all.People + 1, all.Years + p.Age}
		},
		Subtract: func(_ string, p Person, all Population) Population {
			return Population{all.People - 1, all.Years - p.Age}
		},
		Delete: func(_ string, all Population) bool { return all.People == 0 },
	}
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := counting()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
