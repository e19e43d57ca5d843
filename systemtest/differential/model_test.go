package differential

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// model computes what a topology's results must be, from the definitions
// alone: it keeps all records and looks at all of them every time. It is slow
// and has no stores, so that it errs elsewhere than an engine does.
type model struct {
	Case

	step int
	time int64 // stream time, the current input included
	out  []Output
}

// operator is a model of one chain of operators. release delivers what the new
// stream time makes due, before the input is processed; after delivers what
// suppression holds, after it.
type operator interface {
	release(m *model)
	process(m *model, in fed)
	after(m *model)
}

// modelRunner makes the model a Runner.
type modelRunner struct{}

func (modelRunner) Run(c Case) ([]Output, error) {
	op, err := newOperator(c.Topology)
	if err != nil {
		return nil, err
	}
	m := &model{Case: c, time: -1}
	if c.Topology.Get("post") == "final" {
		return runBehind(m, op), nil
	}
	for i, f := range c.feed() {
		m.step, m.time = i, max(m.time, f.Time)
		op.release(m)
		op.process(m, f)
		op.after(m)
	}
	if c.Topology.Get("post") == "recount" || c.Topology.Get("op") == "joincount" {
		return recount(m.out), nil
	}
	if c.Topology.Get("post") == "regroup" {
		return regroup(m.out), nil
	}
	return m.out, nil
}

func newOperator(t Topology) (operator, error) {
	switch op := t.Get("op"); op {
	case "count", "reduce", "aggregate":
		switch t.Get("window") {
		case "":
			return &running{rows: map[string]row{}}, nil
		case "session":
			return &sessionModel{aggregation: newAggregation(t)}, nil
		case "sliding":
			return &sliding{aggregation: newAggregation(t)}, nil
		}
		return &timed{aggregation: newAggregation(t)}, nil
	case "join", "joincount":
		return &joining{t: t}, nil
	case "streamtable":
		return &lookup{t: t}, nil
	case "streamglobal":
		return &global{rows: map[string]string{}}, nil
	case "suppresscount":
		return &held{rows: map[string]row{}}, nil
	default:
		return newTables(t)
	}
}

func (m *model) emit(key, value string, time int64) {
	m.out = append(m.out, Output{m.step, key, value, time})
}

// row is a value with its time.
type row struct {
	value string
	time  int64
}

// fold aggregates values as the topology's operator does.
func fold(op string, values []string) string {
	switch op {
	case "count", "suppresscount":
		return fmt.Sprint(len(values))
	case "reduce":
		return strings.Join(values, "+")
	}
	return "0+" + strings.Join(values, "+")
}

// running is an aggregation without window.
type running struct {
	rows   map[string]row
	values map[string][]string
}

func (r *running) release(*model) {}
func (r *running) after(*model)   {}

func (r *running) process(m *model, in fed) {
	if in.skip {
		return
	}
	if r.values == nil {
		r.values = map[string][]string{}
	}
	r.values[in.Key] = append(r.values[in.Key], in.Value)
	next := row{fold(m.Topology.Get("op"), r.values[in.Key]), in.Time}
	if old, ok := r.rows[in.Key]; ok {
		next.time = max(next.time, old.time)
	}
	r.rows[in.Key] = next
	m.emit(in.Key, next.value, next.time)
}

// recount counts results per key in tumbling windows that nothing is late for.
func recount(all []Output) []Output {
	counts, times := map[string]int{}, map[string]int64{}
	var out []Output
	for _, o := range all {
		key, _, _ := strings.Cut(o.Key, "@")
		if key == Null {
			continue
		}
		start := o.Time - o.Time%20
		w := fmt.Sprintf("%s@%d/%d", key, start, start+20)
		counts[w]++
		times[w] = max(times[w], o.Time)
		out = append(out, Output{o.Step, w, fmt.Sprint(counts[w]), times[w]})
	}
	return out
}

// buffer is a suppression by time.
type buffer struct {
	entries []entry
	gone    map[string]string // last values that were let go
}

type entry struct {
	Output

	first int64
}

func (b *buffer) put(o Output) {
	for i := range b.entries {
		if b.entries[i].Key == o.Key {
			b.entries[i].Output = o
			return
		}
	}
	b.entries = append(b.entries, entry{o, o.Time})
}

// free emits what waited long enough, and the oldest ones while there are too
// many.
func (b *buffer) free(m *model) {
	if b.gone == nil {
		b.gone = map[string]string{}
	}
	slices.SortStableFunc(b.entries, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.first, y.first), strings.Compare(x.Key, y.Key))
	})
	most := int(m.Topology.Int("maxrecords"))
	for len(b.entries) > 0 && (b.entries[0].first <= m.time-m.Topology.Int("wait") || most > 0 && len(b.entries) > most) {
		o := b.entries[0].Output
		b.entries = b.entries[1:]
		if was, ok := b.gone[o.Key]; o.Value == Null && (!ok || was == Null) {
			continue // nobody knows the row
		}
		b.gone[o.Key] = o.Value
		m.emit(o.Key, o.Value, o.Time)
	}
}

// held is a count, or a table, behind a suppression by time.
type held struct {
	rows   map[string]row
	table  bool
	counts map[string]int
	buffer buffer
}

func (h *held) release(*model) {}

func (h *held) process(m *model, in fed) {
	if h.table {
		if in.Key != Null {
			h.buffer.put(Output{Key: in.Key, Value: in.Value, Time: in.Time})
		}
		return
	}
	if in.skip {
		return
	}
	if h.counts == nil {
		h.counts = map[string]int{}
	}
	h.counts[in.Key]++
	h.rows[in.Key] = row{"", max(h.rows[in.Key].time, in.Time)}
	h.buffer.put(Output{Key: in.Key, Value: fmt.Sprint(h.counts[in.Key]), Time: h.rows[in.Key].time})
}

func (h *held) after(m *model) { h.buffer.free(m) }
