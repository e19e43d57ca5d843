package processor

import (
	"slices"
	"strings"
)

// indexed is a description with its things by name.
type indexed struct {
	d                *Description
	inputs           map[string]*placedInput // by topic
	stores           map[string]*placedStore // by name
	order            []*placedStore
	lookups, outputs []string
	operations       map[string]*OperationDescription
	writers          map[string][]*OperationDescription // by topic
}

type placedInput struct {
	*InputDescription
	of *SubgraphDescription
}

type placedStore struct {
	*StoreDescription
	of    *SubgraphDescription
	place string
}

func index(d *Description) *indexed {
	x := &indexed{d: d, inputs: map[string]*placedInput{}, stores: map[string]*placedStore{},
		operations: map[string]*OperationDescription{}, writers: map[string][]*OperationDescription{}}
	keeper := map[string]*OperationDescription{}
	for i := range d.Subgraphs {
		s := &d.Subgraphs[i]
		for j := range s.Inputs {
			x.inputs[s.Inputs[j].Topic] = &placedInput{&s.Inputs[j], s}
		}
		for j := range s.Operations {
			o := &s.Operations[j]
			x.operations[o.ID] = o
			for _, t := range o.Writes {
				x.writers[t] = append(x.writers[t], o)
			}
			for _, st := range o.Stores {
				keeper[st] = o
			}
		}
		x.lookups = append(x.lookups, missing(s.Lookups, x.lookups)...)
	}
	for i := range d.Subgraphs {
		s := &d.Subgraphs[i]
		for _, t := range s.Outputs {
			if in := x.inputs[t]; (in == nil || !in.own()) && !slices.Contains(x.outputs, t) {
				x.outputs = append(x.outputs, t)
			}
		}
		for j := range s.Stores {
			st := &placedStore{&s.Stores[j], s, ""}
			if o := keeper[st.Name]; o != nil {
				nth := slices.Index(o.Stores, st.Name)
				st.place = strings.Repeat("further ", nth) + x.place(o, nil)
			} else {
				st.place = strings.Join([]string{st.Of, st.Details, x.externals(s)}, "|")
			}
			x.stores[st.Name], x.order = st, append(x.order, st)
		}
	}
	return x
}

func (x *indexed) subgraph(name string) *SubgraphDescription {
	for i := range x.d.Subgraphs {
		if x.d.Subgraphs[i].Name == name {
			return &x.d.Subgraphs[i]
		}
	}
	return nil
}

// externals are the topics of others that a subgraph reads.
func (x *indexed) externals(s *SubgraphDescription) string {
	var out []string
	for i := range s.Inputs {
		if !s.Inputs[i].own() {
			out = append(out, s.Inputs[i].Topic)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// place says what an operation does and where it stands, without the names of
// the group's own things: an operation of the same place in another version is
// the same one, whatever it is called.
func (x *indexed) place(o *OperationDescription, behind []*OperationDescription) string {
	if slices.Contains(behind, o) {
		return "again" // a loop through a repartition topic
	}
	behind = append(slices.Clip(behind), o)
	var from []string
	for _, t := range o.Reads {
		if in := x.inputs[t]; in != nil && in.own() {
			from = append(from, x.writtenAt(t, behind))
		} else {
			from = append(from, t)
		}
	}
	for _, p := range o.Parents {
		if parent := x.operations[p]; parent != nil {
			from = append(from, x.place(parent, behind))
		}
	}
	var to []string
	for _, t := range o.Writes {
		if in := x.inputs[t]; in == nil || !in.own() {
			to = append(to, t)
		}
	}
	return o.Kind + "[" + strings.Join(o.Details, ";") + "](" + strings.Join(from, ",") + ")>" + strings.Join(to, ",")
}

// writtenAt is the place of what writes to a topic of the group's own.
func (x *indexed) writtenAt(topic string, behind []*OperationDescription) string {
	var out []string
	for _, w := range x.writers[topic] {
		out = append(out, x.place(w, behind))
	}
	slices.Sort(out)
	return strings.Join(out, "+")
}

// paired finds what was renamed: things of one version only whose place is
// that of one thing, and no other, of the other version only.
func paired(old, next map[string]string) map[string]string {
	names := func(of map[string]string) map[string][]string {
		out := map[string][]string{}
		for name, place := range of {
			out[place] = append(out[place], name)
		}
		return out
	}
	olds, nexts := names(old), names(next)
	out := map[string]string{}
	for place, o := range olds {
		if n := nexts[place]; place != "" && len(o) == 1 && len(n) == 1 {
			out[o[0]] = n[0]
		}
	}
	return out
}
