package processor_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/window"
)

// handles describes a graph of handles.
func handles(t testing.TB, group string, edges ...processor.Edge) processor.Description {
	t.Helper()
	g, err := processor.NewGraph(group, edges...)
	if err != nil {
		t.Fatal(err)
	}
	return g.Describe()
}

// read is an input, kept a store, joined a table, of strings.
func read(topic string, opts ...processor.InputOption) processor.Edge {
	return processor.Input(reka.NewStream(topic, codec.String()), nothing[string], opts...)
}

func kept(name string) processor.Edge { return processor.Store(name, codec.String()) }

func joined(topic string) processor.Edge {
	return processor.Join(reka.NewTable(topic, codec.String()))
}

func byWindow(size time.Duration) processor.Edge {
	return processor.WindowStore("wins", window.Tumbling(size, 0), codec.String())
}

func every(d time.Duration) processor.Edge {
	return processor.Every("beat", d, processor.WallClock, func(*processor.Context, time.Time) error { return nil })
}

// sub is a part that reads topics and keeps stores: "name: topics / stores".
// A topic of the group g's own is "+name", fed by the subgraph of that name.
func sub(text string) processor.Part {
	name, rest, _ := strings.Cut(text, ":")
	topics, stores, _ := strings.Cut(rest, "/")
	p := processor.Part{Graph: graph.Graph{Subgraph: name}}
	for topic := range strings.FieldsSeq(topics) {
		in := graph.Input{Topic: topic}
		if from, own := strings.CutPrefix(topic, "+"); own {
			in.Topic, in.Repartition = reka.RepartitionTopic("g", from), &graph.Repartition{From: []string{from}}
		}
		p.Graph.Inputs, p.Inputs = append(p.Graph.Inputs, in), append(p.Inputs, nil)
	}
	for s := range strings.FieldsSeq(stores) {
		p.Graph.Stores = append(p.Graph.Stores, graph.Store{Name: s, Changelog: reka.ChangelogTopic("g", s), Of: "rows"})
	}
	return p
}

// subs describes a graph of several parts. A part that feeds another emits to
// its topic.
func subs(t testing.TB, texts ...string) processor.Description {
	t.Helper()
	parts := make([]processor.Part, len(texts))
	for i, text := range texts {
		parts[i] = sub(text)
		own := reka.RepartitionTopic("g", parts[i].Graph.Subgraph)
		if strings.Contains(strings.Join(texts, " ")+" ", "+"+parts[i].Graph.Subgraph+" ") {
			parts[i].Graph.Outputs = []graph.Output{{Topic: own}}
		}
	}
	return assembled(t, parts).Describe()
}

// with are counts of topics.
func with(d processor.Description, counts map[string]int32) processor.Description {
	d.Partitions = counts
	return d
}

func TestCompareSaysWhatBecomesOfAGroup(t *testing.T) {
	table := processor.Persist(reka.GroupTable("g", codec.String()))
	of := func(edges ...processor.Edge) processor.Description { return handles(t, "g", edges...) }
	for name, c := range map[string]struct {
		old, next processor.Description
		want      []string
	}{
		"nothing": {of(read("a"), table), of(read("a"), table), nil},
		"another group": {of(read("a")), handles(t, "h", read("a")), []string{
			"loses state: group g changed: group h begins anew: offsets, tables and topics of group g stay behind",
		}},
		"group table gone": {of(read("a"), table), of(read("a")), []string{
			"loses state: store table orphaned: nobody keeps it any more: its rows stay in g-table, which can be deleted when no older version will come back",
			"compatible: subgraph main changed: it has g-table less: in a rolling upgrade new members wait until the last old one has left",
		}},
		"store renamed": {of(read("a"), kept("x")), of(read("a"), kept("y")), []string{
			"loses state: store x renamed: it is y now, and that begins empty: its rows stay in g-x-changelog; give it its old name to keep them",
			"needs a stop: subgraph main changed: the new version lacks g-x-changelog, the old one g-y-changelog: neither runs beside the other",
		}},
		"two stores for two": {of(read("a"), kept("x"), kept("y")), of(read("a"), kept("v"), kept("w")), []string{
			"loses state: store x orphaned: nobody keeps it any more: its rows stay in g-x-changelog, which can be deleted when no older version will come back",
			"loses state: store y orphaned: nobody keeps it any more: its rows stay in g-y-changelog, which can be deleted when no older version will come back",
			"needs a stop: subgraph main changed: the new version lacks g-x-changelog, g-y-changelog, the old one g-v-changelog, g-w-changelog: neither runs beside the other",
			"compatible: store v added: it begins empty, with the records from then on",
			"compatible: store w added: it begins empty, with the records from then on",
		}},
		"input added": {of(read("a")), of(read("a"), read("b", processor.FromLatest())), []string{
			"compatible: subgraph main changed: it has b more: in a rolling upgrade new members run all partitions, and old ones wait",
			"compatible: input b added: it is read from its end; the topic must exist before Run",
		}},
		"input removed": {of(read("a"), read("b")), of(read("a")), []string{
			"compatible: subgraph main changed: it has b less: in a rolling upgrade new members wait until the last old one has left",
			"compatible: input b removed: records of it that are not processed yet will not be; its offsets stay for a version that reads it again",
		}},
		"input with other options, now joined": {of(read("a"), read("b", processor.Nulls())), of(read("a", processor.WallTime()), joined("b")), []string{
			"compatible: input a changed: its options were none, and are wall time",
			"compatible: input b changed: it was read as stream, and is as joined table",
		}},
		"no input left that has offsets": {of(read("a"), kept("x")), of(read("b"), kept("x")), []string{
			"refuses to start: store x changed: subgraph main has its rows, but reads nothing that was read before: Run returns ErrOffsetsLost unless WithLostOffsets says otherwise",
			"needs a stop: subgraph main changed: the new version lacks a, the old one b: neither runs beside the other",
			"compatible: input a removed: records of it that are not processed yet will not be; its offsets stay for a version that reads it again",
			"compatible: input b added: it is read from its start; the topic must exist before Run",
		}},
		"other windows": {of(read("a"), byWindow(time.Minute)), of(read("a"), byWindow(time.Hour)), []string{
			"loses state: store wins changed: it was of tumbling 1m, no grace, and is of tumbling 1h, no grace: rows that it has do not fit; give it another name",
		}},
		"rows instead of windows": {of(read("a"), byWindow(time.Minute)), of(read("a"), kept("wins")), []string{
			"loses state: store wins changed: it was of windows, and is of rows, whose rows are laid out in another way: give it another name",
		}},
		"local store": {of(read("a"), kept("x")), of(read("a"), processor.Store("x", codec.String(), processor.NoChangelog())), []string{
			"loses state: store x changed: it is local now: its rows stay in g-x-changelog",
			"compatible: subgraph main changed: it has g-x-changelog less: in a rolling upgrade new members wait until the last old one has left",
		}},
		"beat, policy, output": {
			of(read("a"), every(time.Minute)),
			of(read("a"), every(time.Hour), processor.OnError(processor.Decode, processor.DeadLetters("dead")), processor.Output(reka.NewStream("out", codec.String()))),
			[]string{
				"compatible: error policy decode changed: dead letter to dead instead of fail",
				"compatible: output out added: topic out must exist before Run",
				"compatible: dead letters dead added: topic dead must exist before Run",
				"compatible: timer beat changed: it ran every 1m0s, and runs every 1h0m0s",
			},
		},
		"subgraph renamed":  {subs(t, "p: a / x"), subs(t, "q: a / x"), []string{"needs a stop: subgraph p renamed: it is called q now"}},
		"subgraphs merged":  {subs(t, "p: a / x", "q: b"), subs(t, "p: a b / x"), []string{"needs a stop: subgraph p merged: it goes on with what subgraphs p and q had"}},
		"subgraph split":    {subs(t, "p: a b / x"), subs(t, "p: a / x", "q: b"), []string{"needs a stop: subgraph p split: what it had is shared by 2 subgraphs now"}},
		"repartition topic": {subs(t, "p: a", "q: b +p"), subs(t, "p: a", "q: b"), []string{"loses state: repartition topic g-p-repartition orphaned: nobody reads it any more: records in it that are not processed yet stay there", "compatible: subgraph q changed: it has g-p-repartition less: in a rolling upgrade new members wait until the last old one has left"}},
		"store moved": {subs(t, "p: a / x", "q: b"), subs(t, "p: a", "q: b / x"), []string{
			"needs a stop: store x changed: it moves from subgraph p to subgraph q: only one version at a time may run what keeps it",
			"compatible: subgraph p changed: it has g-x-changelog less: in a rolling upgrade new members wait until the last old one has left",
			"compatible: subgraph q changed: it has g-x-changelog more: in a rolling upgrade new members run all partitions, and old ones wait",
		}},
		"input of another count": {with(of(read("a"), kept("x")), map[string]int32{"a": 4, "b": 5, "g-x-changelog": 4}), of(read("a"), read("b"), kept("x")), []string{
			"refuses to start: input b repartitioned: it has 5 partitions, a has 4: inputs and joined tables of a subgraph need equal counts",
			"compatible: subgraph main changed: it has b more: in a rolling upgrade new members run all partitions, and old ones wait",
			"compatible: input b added: it is read from its start; the topic must exist before Run",
		}},
		"input that grew": {with(of(read("a"), kept("x")), map[string]int32{"a": 4, "g-x-changelog": 4}), with(of(read("a"), kept("x")), map[string]int32{"a": 8}), []string{
			"refuses to start: topic g-x-changelog repartitioned: it has 4 partitions, the inputs of subgraph main have 8: its keys lie elsewhere",
		}},
		"guarantee": {guaranteed(of(read("a")), "at least once"), guaranteed(of(read("a")), "exactly once"), []string{
			"compatible: guarantee at least once changed: exactly once instead of at least once, member by member",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range processor.Compare(c.old, c.next) {
				got = append(got, d.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}

func guaranteed(d processor.Description, g string) processor.Description {
	d.Guarantee = g
	return d
}

func TestCompareOfDeclaredCounts(t *testing.T) {
	of := func(n int32) processor.Description { return assembled(t, rekeying(n)).Describe() }
	has := func(n int32) map[string]int32 { return map[string]int32{byWord.Name(): n} }
	const topic = "repartition topic g-by-word-repartition "
	for name, c := range map[string]struct {
		old, next processor.Description
		want      string
	}{
		"another":              {of(4), of(8), "refuses to start: " + topic + "repartitioned: it was declared with 4 partitions, and is with 8: a new count needs a new name"},
		"another than it has":  {with(of(0), has(4)), of(8), "refuses to start: " + topic + "repartitioned: it has 4 partitions, and is declared with 8: a new count needs a new name"},
		"the one that it has":  {with(of(0), has(4)), of(4), "compatible: " + topic + "changed: it is declared with the 4 partitions that it has"},
		"one for none":         {of(0), of(4), "refuses to start: " + topic + "repartitioned: it is declared with 4 partitions now; if it has another count, that needs a new name"},
		"no count any more":    {of(4), of(0), "compatible: " + topic + "changed: its count is not declared any more: it keeps the one that it has"},
		"the same as ever was": {of(4), of(4), ""},
	} {
		var got []string
		for _, d := range processor.Compare(c.old, c.next) {
			got = append(got, d.String())
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: got  %s\nwant %s", name, strings.Join(got, "\n"), c.want)
		}
	}
}
