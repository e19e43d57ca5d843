package stream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/stream"
)

func waits(b *stream.Builder, table stream.Table[string], d time.Duration) {
	stream.JoinTable(stream.From(b, text("in")), table, innerText, stream.WithTableWait(d))
}

func TestMistakesOfTableOperationsAreReported(t *testing.T) {
	table := func(b *stream.Builder, opts ...stream.Option) stream.Table[string] {
		return stream.FromTable(b, rows("L"), opts...)
	}
	right := func(b *stream.Builder) stream.Table[string] { return stream.FromTable(b, rows("R")) }
	for want, build := range map[string]func(b *stream.Builder){
		"jointables of L: no function": func(b *stream.Builder) {
			stream.JoinTables[string, string, string](table(b), right(b), nil)
		},
		`jointables "L-jointables": needs a codec for string`: func(b *stream.Builder) {
			joinTables(table(b), table(b), 0)
		},
		"jointables: its input is of another builder": func(b *stream.Builder) {
			joinTables(table(b), right(stream.NewBuilder("other")), 0)
		},
		"filter of L: no function": func(b *stream.Builder) { table(b).Filter(nil) },
		"TableFirst does not go with Versioned": func(b *stream.Builder) {
			table(b, stream.TableFirst(), stream.Versioned(time.Second))
		},
		`versions "L-versions": Versioned: -1s is negative`: func(b *stream.Builder) { table(b, stream.Versioned(-time.Second)) },
		"outerjointables of L: lives by the changes": func(b *stream.Builder) {
			joinTables(table(b, stream.TableFirst()), right(b), 2)
		},
		"changes of L: lives by the changes":             func(b *stream.Builder) { table(b, stream.TableFirst()).To(rows("out")) },
		"options belong to the first use of a table":     func(b *stream.Builder) { table(b); table(b, stream.Versioned(time.Second)) },
		"WithTableWait: the table is not Versioned":      func(b *stream.Builder) { waits(b, table(b), time.Second) },
		"WithTableWait(2s): the table's history is only": func(b *stream.Builder) { waits(b, table(b, stream.Versioned(time.Second)), 2*time.Second) },
		"WithTableWait: 1.5ms is no whole number":        func(b *stream.Builder) { waits(b, table(b, stream.Versioned(time.Second)), 1500*time.Microsecond) },
		"from of L: a nil option":                        func(b *stream.Builder) { table(b, nil) },
		"joinglobal of in: its global table is of another builder": func(b *stream.Builder) {
			g := stream.Global(stream.NewBuilder("other"), rows("G"))
			stream.JoinGlobal(stream.From(b, text("in")), g, ownKey, innerText)
		},
		`reduce "L-grouptable-reduce": no function to add with`: func(b *stream.Builder) {
			stream.GroupTable(table(b), byValue).Reduce(nil, nil)
		},
		`aggregate "L-grouptable-aggregate": no function to add with, or none to subtract with`: func(b *stream.Builder) {
			stream.AggregateTable(stream.GroupTable(table(b), byValue), stream.Aggregator[string, string]{Add: func(_, _, a string) string { return a }})
		},
		`grouptable "L-grouptable": needs a codec for int`: func(b *stream.Builder) {
			stream.GroupTable(table(b), func(_, v string) (string, int) { return v, 1 })
		},
		"from of L: read as a stream, too": func(b *stream.Builder) { stream.From(b, text("L")); table(b, stream.TableFirst()) },
		"from of L: read as a table, too":  func(b *stream.Builder) { table(b, stream.TableFirst()); stream.From(b, text("L")) },
		"totable of in: Versioned is no option of it": func(b *stream.Builder) {
			stream.From(b, text("in")).ToTable(stream.Versioned(time.Second))
		},
		`joinforeign "L-joinforeign": needs a codec for string`: func(b *stream.Builder) {
			stream.JoinForeign(table(b), right(b), refersTo, innerText)
		},
	} {
		b := stream.NewBuilder("g")
		build(b)
		if _, err := b.Graph(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
