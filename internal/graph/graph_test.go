package graph

import (
	"strings"
	"testing"
)

// whole is a graph with everything in it.
func whole() *Graph {
	return &Graph{
		Group:     "g",
		Inputs:    []Input{{Topic: "in"}, {Topic: "g-loop", Loop: true}},
		Outputs:   []Output{{Topic: "out"}},
		Stores:    []Store{{Name: "table", Changelog: "g-table"}, {Name: "local"}},
		Joins:     []Join{{Topic: "joined"}},
		Lookups:   []Lookup{{Topic: "looked-up"}},
		OnProcess: Policy{Action: DeadLetter, Topic: "dead"},
	}
}

func TestValidateAcceptsAWholeGraph(t *testing.T) {
	if err := whole().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestJoinedTablesThatRunCodeAreEnough(t *testing.T) {
	g := whole()
	if got := g.Marked(); got != "in" {
		t.Errorf("marks go with %s, want in", got)
	}
	g.Inputs, g.JoinsRun, g.OnProcess = nil, true, Policy{}
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
	if got := g.Marked(); got != "joined" {
		t.Errorf("marks go with %s, want joined", got)
	}
	g.Joins = nil
	if err := g.Validate(); err == nil {
		t.Error("a graph that reads nothing was accepted")
	}
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Graph)
		says   string
	}{
		"no group":                       {func(g *Graph) { g.Group = "" }, "empty group name"},
		"no input":                       {func(g *Graph) { g.Inputs = nil }, "no input"},
		"joined tables that run no code": {func(g *Graph) { g.Inputs, g.NullKeysAnywhere = nil, true }, "no input"},
		"input twice":                    {func(g *Graph) { g.Inputs = append(g.Inputs, Input{Topic: "in"}) }, "as input and as input"},
		"input joined":                   {func(g *Graph) { g.Joins[0].Topic = "in" }, "as input and as join"},
		"joined looked up":               {func(g *Graph) { g.Lookups[0].Topic = "joined" }, "as join and as lookup"},
		"no topic name":                  {func(g *Graph) { g.Inputs[0].Topic = "a b" }, "not a topic name"},
		"topic name of dots":             {func(g *Graph) { g.Outputs[0].Topic = ".." }, "not a topic name"},
		"topic name too long":            {func(g *Graph) { g.Outputs[0].Topic = strings.Repeat("x", 250) }, "not a topic name"},
		"output twice":                   {func(g *Graph) { g.Outputs = append(g.Outputs, Output{Topic: "out"}) }, "declared twice"},
		"store twice":                    {func(g *Graph) { g.Stores[1].Name = "table" }, "declared twice"},
		"own table read":                 {func(g *Graph) { g.Lookups[0].Topic = "g-table" }, "changelog of this group"},
		"own table written":              {func(g *Graph) { g.Outputs[0].Topic = "g-table" }, "changelog of this group"},
		"null keys with stores":          {func(g *Graph) { g.Inputs[0].NullKeys = true }, "null keys"},
		"dead letters to an input":       {func(g *Graph) { g.OnProcess.Topic = "in" }, "declared as input"},
		"dead letters to a loop":         {func(g *Graph) { g.OnProcess.Topic = "g-loop" }, "declared as input"},
		"dead letters to a join":         {func(g *Graph) { g.OnProcess.Topic = "joined" }, "declared as join"},
		"dead letters to the table":      {func(g *Graph) { g.OnProcess.Topic = "g-table" }, "cannot take dead letters"},
		"dead letters to nowhere":        {func(g *Graph) { g.OnProcess.Topic = "" }, "phase process"},
		"outputs that may be skipped":    {func(g *Graph) { g.OnProduce = Policy{Action: Skip} }, "phase produce"},
	} {
		t.Run(name, func(t *testing.T) {
			g := whole()
			c.change(g)
			err := g.Validate()
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want one with %q", err, c.says)
			}
		})
	}
}

func TestFingerprintTellsGraphsApart(t *testing.T) {
	base := whole().Fingerprint()
	if again := whole().Fingerprint(); again != base {
		t.Fatalf("fingerprints %x and %x of equal graphs", base, again)
	}
	for name, change := range map[string]func(*Graph){
		"input":     func(g *Graph) { g.Inputs[0].Topic = "in2" },
		"nulls":     func(g *Graph) { g.Inputs[0].Nulls = true },
		"output":    func(g *Graph) { g.Outputs[0].Topic = "out2" },
		"store":     func(g *Graph) { g.Stores[1].Name = "local2" },
		"join":      func(g *Graph) { g.Joins[0].First = true },
		"lookup":    func(g *Graph) { g.Lookups[0].Topic = "looked-up2" },
		"policy":    func(g *Graph) { g.OnProcess.Topic = "dead2" },
		"one fewer": func(g *Graph) { g.Lookups = nil },
	} {
		g := whole()
		change(g)
		if g.Fingerprint() == base {
			t.Errorf("%s: the fingerprint is the same", name)
		}
	}
}
