package systemtest

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// streams is an application of every kind of operation, in one group. Its
// results do not depend on when its tasks run: a task has one input, or inputs
// that are complete before it starts, and who is regrouped stays in the
// partition where it was. What goes between partitions is compared by its end.
type streams struct {
	Group      string `json:"group"`
	Suffix     string `json:"suffix"` // of all topics
	Partitions int32  `json:"partitions"`
}

// Windows of the application. All divide a day: inputs begin with one.
var (
	streamsTumbling = window.Tumbling(200*time.Millisecond, 100*time.Millisecond)
	streamsHopping  = window.Hopping(400*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond)
	streamsSliding  = window.Sliding(60*time.Millisecond, 80*time.Millisecond)
	streamsSession  = window.Session(40*time.Millisecond, 100*time.Millisecond)
	streamsAgain    = window.Session(500*time.Millisecond, 50*time.Millisecond)
)

// likeness says what two runs have in common in a topic.
type likeness int

const (
	inOrder likeness = iota // the records of each partition, in order
	atLast                  // the last record of each key
)

// streamsOutputs are the topics of results, without the suffix.
var streamsOutputs = map[string]likeness{
	"updates": inOrder, "finals": inOrder, "late": inOrder, "hops": inOrder, "panes": inOrder, "slides": inOrder,
	"sessions": inOrder, "ended": inOrder, "closed": inOrder, "again": inOrder, "totals": inOrder, "calm": inOrder,
	"rekeyed": inOrder, "leftjoin": inOrder, "outerjoin": inOrder, "groups": inOrder, "joined": inOrder,
	"spread": atLast, "foreign": atLast,
}

// streamsInputs are the topics that it reads, and whether they are tables.
var streamsInputs = map[string]bool{"events": false, "left": false, "right": false, "rows": true, "side": true}

func (s streams) topic(name string) string { return name + "-" + s.Suffix }

func (s streams) text(name string) reka.Stream[string] {
	return reka.NewStream(s.topic(name), codec.String())
}

func (s streams) table(name string) reka.Table[string] {
	return reka.NewTable(s.topic(name), codec.String())
}

func (s streams) counts(name string) reka.Table[int64] {
	return reka.NewTable(s.topic(name), codec.Int64Text())
}

func streamsWindows[T any](s streams, name string, w window.Windows, c codec.Codec[T]) reka.WindowTable[T] {
	return reka.NewWindowTable(s.topic(name), w, c)
}

// asText is the codec of results that are text.
var asText = stream.WithCodec(codec.String())

// inARow gathers values in the order in which they came. What is taken out
// stays to be seen.
var inARow = stream.Aggregator[string, string]{
	Add:      func(_, v, a string) string { return a + "+" + v },
	Subtract: func(_, v, a string) string { return tail(a + "-" + v) },
	Merge:    func(_, a, b string) string { return a + "&" + b },
}

// tail bounds what a group shows of its past.
func tail(s string) string { return s[max(0, len(s)-60):] }

func (s streams) graph() (*processor.Graph, error) {
	b := stream.NewBuilder(s.Group)
	s.declareWindows(b)
	s.declareJoins(b)
	s.declareTables(b)
	return b.Graph()
}

func (s streams) declareWindows(b *stream.Builder) {
	events := stream.From(b, s.text("events"))
	byKey := events.GroupByKey()

	tumbling := stream.AggregateWindows(byKey.Windowed(streamsTumbling).Late(s.text("late")), inARow, asText, stream.Named("tumbling"))
	tumbling.To(streamsWindows(s, "updates", streamsTumbling, codec.String()))
	finals := tumbling.OnClose()
	finals.To(streamsWindows(s, "finals", streamsTumbling, codec.String()))
	again := stream.MapValues(stream.Results(finals), func(_ string, r stream.Result[string]) string {
		return strconv.Itoa(len(r.Value))
	}, asText).GroupByKey().Windowed(streamsAgain)
	stream.AggregateWindows(again, inARow, asText, stream.Named("again")).OnClose().
		To(streamsWindows(s, "again", streamsAgain, codec.String()))

	stream.AggregateWindows(byKey.Windowed(streamsHopping), inARow, asText, stream.Named("hopping")).OnClose().
		To(streamsWindows(s, "hops", streamsHopping, codec.String()))
	byKey.Windowed(streamsHopping).Count(stream.Named("panes")).OnClose().
		To(streamsWindows(s, "panes", streamsHopping, codec.Int64Text()))
	stream.AggregateWindows(byKey.Windowed(streamsSliding), inARow, asText, stream.Named("sliding")).OnClose().
		To(streamsWindows(s, "slides", streamsSliding, codec.String()))

	sessions := stream.AggregateWindows(byKey.Windowed(streamsSession), inARow, asText, stream.Named("sessions"))
	sessions.To(streamsWindows(s, "sessions", streamsSession, codec.String()))
	sessions.OnClose().To(streamsWindows(s, "ended", streamsSession, codec.String()))

	byKey.Windowed(streamsTumbling).Count(stream.Named("suppressed")).Suppress(stream.UntilClosed(), stream.Named("until-closed")).
		To(streamsWindows(s, "closed", streamsTumbling, codec.Int64Text()))
	totals := byKey.Count(stream.Named("totals"))
	totals.To(s.counts("totals"))
	totals.Suppress(stream.UntilElapsed(150*time.Millisecond).MaxRecords(3), stream.Named("until-elapsed")).To(s.counts("calm"))

	home := s.homes()
	rekeyed := events.SelectKey(home).GroupByKey(stream.Named("rekeyed")).Windowed(streamsTumbling)
	stream.AggregateWindows(rekeyed, inARow, asText, stream.Named("rekeyed-windows")).OnClose().
		To(streamsWindows(s, "rekeyed", streamsTumbling, codec.String()))
}

func (s streams) declareJoins(b *stream.Builder) {
	left, right := stream.From(b, s.text("left")), stream.From(b, s.text("right"))
	w := stream.Within(50*time.Millisecond, 60*time.Millisecond)
	side := func(v *string) string {
		if v == nil {
			return "~"
		}
		return *v
	}
	stream.LeftJoin(left, right, w, func(_, l string, r *string) string { return l + "|" + side(r) }, asText, stream.Named("left-join")).
		To(s.text("leftjoin"))
	stream.OuterJoin(left, right, w, func(_ string, l, r *string) string { return side(l) + "|" + side(r) }, asText, stream.Named("outer-join")).
		To(s.text("outerjoin"))
}

func (s streams) declareTables(b *stream.Builder) {
	rows, side := stream.FromTable(b, s.table("rows"), stream.Named("rows")), stream.FromTable(b, s.table("side"), stream.Named("side"))
	home := s.homes()
	byHome := stream.GroupTable(rows, func(key, v string) (string, string) { return home(key, v), key + "=" + v }, stream.Named("by-home"))
	stream.AggregateTable(byHome, inARow, asText, stream.Named("groups")).To(s.table("groups"))
	stream.GroupTable(rows, func(_, v string) (string, string) { return letterOf(v), v }, stream.Named("by-letter")).
		Count(stream.Named("spread")).To(s.counts("spread"))
	stream.JoinTables(rows, side, func(_, l, r string) string { return l + "|" + r }, asText, stream.Named("joined")).To(s.table("joined"))
	stream.JoinForeign(rows, side, func(_, v string) (string, bool) { return "key-" + v[len(v)-1:], true },
		func(_, l, r string) string { return l + "|" + r }, asText, stream.Named("foreign")).To(s.table("foreign"))
}

// letterOf is one of a few groups of a value.
func letterOf(v string) string {
	h := fnv.New32a()
	h.Write([]byte(v))
	return string(rune('a' + h.Sum32()%5))
}

// homes returns a function that gives a record another key which lies in the
// same partition.
func (s streams) homes() func(key, v string) string {
	place := kafka.Murmur2()
	names := make([][]string, s.Partitions)
	for i := 0; short(names, 3); i++ {
		name := fmt.Sprint("home-", i)
		p := place.Partition([]byte(name), s.Partitions)
		names[p] = append(names[p], name)
	}
	return func(key, v string) string {
		own := names[place.Partition([]byte(key), s.Partitions)]
		return own[(letterOf(v)[0]-'a')%3]
	}
}

// short reports whether a partition has fewer than n names.
func short(names [][]string, n int) bool {
	for _, own := range names {
		if len(own) < n {
			return true
		}
	}
	return false
}
