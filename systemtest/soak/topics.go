package soak

import (
	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
)

// Topics and groups of a run. It has a cluster of its own, so the names can
// be fixed.
const (
	eventsTopic  = "events"
	ratesTopic   = "rates"
	effectsTopic = "effects"
	nthTopic     = "nth"
	secondTopic  = "second-effects"
	tallyGroup   = "tally"
	secondGroup  = "second"
)

// event is an input: its number within its key, from 1, and an id that no
// other has.
type event struct {
	Seq int64 `json:"s"`
	ID  int64 `json:"i"`
}

// effect is what the processing of one event did: the count that its row had
// afterwards, and the version of the joined row.
type effect struct {
	Seq   int64 `json:"s"`
	ID    int64 `json:"i"`
	Count int64 `json:"c"`
	Rate  int64 `json:"r"`
}

// row is what a group's table has for a key.
type row struct {
	Count int64 `json:"c"` // events counted
	Sum   int64 `json:"x"` // of their ids, so that one twice does not stand for another
	Last  int64 `json:"l"` // number of the last one
}

var (
	events        = reka.NewStream(eventsTopic, codec.JSON[event]())
	rates         = reka.NewTable(ratesTopic, codec.Int64())
	effects       = reka.NewStream(effectsTopic, codec.JSON[effect]())
	nth           = reka.NewStream(nthTopic, codec.JSON[event]())
	secondEffects = reka.NewStream(secondTopic, codec.JSON[effect]())
	tallyTable    = reka.GroupTable(tallyGroup, codec.JSON[row]())
	secondTable   = reka.GroupTable(secondGroup, codec.JSON[row]())
)

// specs are the topics that exist before the service starts. The tables are
// the groups' own, but a reader follows them from the start.
func specs() []kafka.TopicSpec {
	var out []kafka.TopicSpec
	for _, name := range []string{eventsTopic, effectsTopic, nthTopic, secondTopic} {
		out = append(out, kafka.TopicSpec{Name: name, Partitions: partitions})
	}
	for _, name := range []string{ratesTopic, tallyTable.Name(), secondTable.Name()} {
		out = append(out, kafka.TopicSpec{Name: name, Partitions: partitions, Configs: kafka.ChangelogConfigs()})
	}
	return out
}
