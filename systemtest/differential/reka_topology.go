package differential

import (
	"fmt"
	"strings"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// always is longer than any case lasts, in milliseconds.
const always = 10_000_000

func (a *act) ms(name string) time.Duration { return millis(a.Topology.Int(name)) }

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// declare declares the case's topology.
func (a *act) declare(b *stream.Builder) error {
	switch op := a.Topology.Get("op"); op {
	case "count", "reduce", "aggregate":
		return a.aggregation(b)
	case "join":
		a.results(a.streamJoin(b))
	case "joincount":
		recounted(a, a.streamJoin(b))
	case "tablejoin":
		a.rows(a.tableJoin(b))
	case "foreignjoin":
		a.rows(a.foreignJoin(b))
	case "streamtable":
		a.results(a.streamTable(b))
	case "streamglobal":
		a.streamGlobal(b).To(a.outText())
	case "tableagg", "tablecount":
		a.tableAggregation(b)
	case "tablefilter":
		a.rows(a.table(b, "L").Filter(notZ))
	case "tablemap":
		a.rows(stream.MapTable(a.table(b, "L"), func(_, v string) string { return letter(v) }, text))
	case "totable":
		a.rows(a.stream(b, "L").ToTable())
	case "suppresstime":
		a.rows(a.table(b, "L").Suppress(a.suppression()))
	case "suppresscount":
		a.stream(b, "L").GroupByKey().Count().Suppress(a.suppression()).To(a.outCount())
	default:
		return fmt.Errorf("unknown op %q", op)
	}
	return nil
}

// results writes a stream, or what is made of it.
func (a *act) results(f stream.Flow[string]) {
	if a.Topology.Get("post") == "final" {
		final(a, f)
		return
	}
	f.To(a.outText())
}

// rows writes a table, or what is made of it.
func (a *act) rows(t stream.Table[string]) {
	if a.Topology.Get("post") == "regroup" {
		by := stream.GroupTable(t, func(_, v string) (string, string) { return letter(v), v })
		t = stream.AggregateTable(by, adding, text)
	}
	t.To(a.outText())
}

// text is the codec of results that are text.
var text = stream.WithCodec(codec.String())

func (a *act) outText() reka.Table[string] { return reka.NewTable("out"+a.suffix, codec.String()) }

func (a *act) outCount() reka.Table[int64] { return reka.NewTable("out"+a.suffix, codec.Int64Text()) }

func (a *act) stream(b *stream.Builder, topic string) stream.Flow[string] {
	return stream.From(b, reka.NewStream(topic+a.suffix, codec.String()))
}

func (a *act) table(b *stream.Builder, topic string) stream.Table[string] {
	var opts []stream.Option
	if a.Topology.versioned(topic) {
		opts = append(opts, stream.Versioned(millis(always)))
	}
	return stream.FromTable(b, reka.NewTable(topic+a.suffix, codec.String()), opts...)
}

func notZ(_, v string) bool { return !strings.HasPrefix(v, "z") }

// input is the stream that is aggregated.
func (a *act) input(b *stream.Builder) stream.Flow[string] {
	in := a.stream(b, "L")
	switch a.Topology.Get("pre") {
	case "filter":
		return in.Filter(notZ)
	case "rekey":
		return in.SelectKey(func(_, v string) string { return letter(v) })
	case "merge":
		return in.Merge(a.stream(b, "R"))
	}
	return in
}

func reduce(x, y string) string { return x + "+" + y }

// adding gathers values as "0+a+b". That is not mergeable, since the order of
// the values shows.
var adding = stream.Aggregator[string, string]{
	Init:     func() string { return "0" },
	Add:      func(_, v, a string) string { return a + "+" + v },
	Subtract: func(_, v, a string) string { return a + "-" + v },
	Merge:    func(_, a, b string) string { return a + strings.TrimPrefix(b, "0") },
}

func (a *act) aggregation(b *stream.Builder) error {
	in, op := a.input(b).GroupByKey(), a.Topology.Get("op")
	if a.Topology.Get("window") == "" {
		switch op {
		case "count":
			in.Count().To(a.outCount())
		case "reduce":
			in.Reduce(reduce).To(a.outText())
		default:
			stream.Aggregate(in, adding, text).To(a.outText())
		}
		return nil
	}
	w, err := a.windows()
	if err != nil {
		return err
	}
	by := in.Windowed(w)
	switch op {
	case "count":
		windowed(a, by.Count(), codec.Int64Text())
	case "reduce":
		windowed(a, by.Reduce(reduce), codec.String())
	default:
		windowed(a, stream.AggregateWindows(by, adding, text), codec.String())
	}
	return nil
}

func (a *act) windows() (window.Windows, error) {
	size, grace := a.ms("size"), a.ms("grace")
	switch kind := a.Topology.Get("window"); kind {
	case "tumbling":
		return window.Tumbling(size, grace), nil
	case "hopping":
		return window.Hopping(size, a.ms("advance"), grace), nil
	case "sliding":
		return window.Sliding(size, grace), nil
	case "session":
		return window.Session(a.ms("gap"), grace), nil
	default:
		return window.Windows{}, fmt.Errorf("unknown window %q", kind)
	}
}

// windowed chooses what leaves of windows, and where to.
func windowed[A any](a *act, out stream.Windows[A], c codec.Codec[A]) {
	switch a.Topology.Get("emit") {
	case "close":
		out = out.OnClose()
	case "suppress":
		out = out.Suppress(stream.UntilClosed())
	}
	switch a.Topology.Get("post") {
	case "recount":
		recounted(a, stream.Results(out))
		return
	case "final":
		final(a, stream.Results(out))
		return
	}
	w, _ := a.windows() // it was asked before
	toWindows(a, out, w, c)
}

// recounted counts behind an operator that holds results back.
func recounted[T any](a *act, in stream.Flow[T]) {
	w := window.Tumbling(millis(20), millis(1000))
	toWindows(a, in.GroupByKey().Windowed(w).Count(), w, codec.Int64Text())
}

// final counts by key in windows without grace, of which each has one result.
func final[T any](a *act, in stream.Flow[T]) {
	w := window.Tumbling(millis(20), window.NoGrace)
	toWindows(a, in.GroupByKey().Windowed(w).Count().OnClose(), w, codec.Int64Text())
}

// toWindows writes results, and has their keys read as doc.go has it.
func toWindows[A any](a *act, out stream.Windows[A], w window.Windows, c codec.Codec[A]) {
	a.key = func(b []byte) (string, error) {
		key, win, err := w.SplitTopicKey(b)
		return fmt.Sprintf("%s@%d/%d", key, win.Start, win.End), err
	}
	out.To(reka.NewWindowTable("out"+a.suffix, w, c))
}

func (a *act) suppression() stream.Suppression {
	by := stream.UntilElapsed(a.ms("wait"))
	if n := a.Topology.Int("maxrecords"); n > 0 {
		return by.MaxRecords(n)
	}
	return by
}

// pair is a join's result.
func pair(l, r *string) string {
	show := func(v *string) string {
		if v == nil {
			return none
		}
		return *v
	}
	return show(l) + "|" + show(r)
}

func innerPair(_, l, r string) string         { return pair(&l, &r) }
func leftPair(_, l string, r *string) string  { return pair(&l, r) }
func outerPair(_ string, l, r *string) string { return pair(l, r) }

func (a *act) streamJoin(b *stream.Builder) stream.Flow[string] {
	l := a.stream(b, "L")
	r := l
	if a.Topology.Get("self") == "" {
		r = a.stream(b, "R")
	}
	w := stream.Between(a.ms("before"), a.ms("after"), a.ms("grace"))
	switch a.Topology.Get("kind") {
	case "inner":
		return stream.Join(l, r, w, innerPair, text)
	case "left":
		return stream.LeftJoin(l, r, w, leftPair, text)
	}
	return stream.OuterJoin(l, r, w, outerPair, text)
}

func (a *act) tableJoin(b *stream.Builder) stream.Table[string] {
	l, r := a.table(b, "L"), a.table(b, "R")
	switch a.Topology.Get("kind") {
	case "inner":
		return stream.JoinTables(l, r, innerPair, text)
	case "left":
		return stream.LeftJoinTables(l, r, leftPair, text)
	}
	return stream.OuterJoinTables(l, r, outerPair, text)
}

// foreignKey is the foreign key in a value.
func foreignKey(_, v string) (string, bool) {
	key := foreign(v)
	return key, key != Null
}

func (a *act) foreignJoin(b *stream.Builder) stream.Table[string] {
	l, r := a.table(b, "L"), a.table(b, "R")
	if a.Topology.Get("kind") == "inner" {
		return stream.JoinForeign(l, r, foreignKey, innerPair, text)
	}
	return stream.LeftJoinForeign(l, r, foreignKey, leftPair, text)
}

func (a *act) streamTable(b *stream.Builder) stream.Flow[string] {
	l, r := a.stream(b, "L"), a.table(b, "R")
	opts := []stream.Option{text}
	if a.Topology.Get("grace") != "" {
		opts = append(opts, stream.WithTableWait(a.ms("grace")))
	}
	if a.Topology.Get("kind") == "inner" {
		return stream.JoinTable(l, r, innerPair, opts...)
	}
	return stream.LeftJoinTable(l, r, leftPair, opts...)
}

func (a *act) streamGlobal(b *stream.Builder) stream.Flow[string] {
	l := a.stream(b, "L")
	g := stream.Global(b, reka.NewTable("R"+a.suffix, codec.String()))
	by := foreignKey
	if a.Topology.Get("by") == "key" {
		by = func(key, _ string) (string, bool) { return key, key != "" } // no case has an empty key
	}
	if a.Topology.Get("kind") == "inner" {
		return stream.JoinGlobal(l, g, by, innerPair, text)
	}
	return stream.LeftJoinGlobal(l, g, by, leftPair, text)
}

func (a *act) tableAggregation(b *stream.Builder) {
	by := stream.GroupTable(a.table(b, "L"), func(_, v string) (string, string) { return letter(v), v })
	if a.Topology.Get("op") == "tablecount" {
		by.Count().To(a.outCount())
		return
	}
	stream.AggregateTable(by, adding, text).To(a.outText())
}
