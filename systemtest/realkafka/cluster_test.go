package realkafka

import (
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	StopShared()
	os.Exit(code)
}

func TestSharedNodeIsOne(t *testing.T) {
	a, b := Shared(t), Shared(t)
	if a != b || len(a.Brokers()) != 1 {
		t.Errorf("%v and %v", a.Brokers(), b.Brokers())
	}
}

func TestJavaProgramRunsAgainstTheSameJars(t *testing.T) {
	c := Shared(t)
	out := RunJava(t.Context(), t, "testdata/Describe.java", c.Brokers()[0])
	if strings.TrimSpace(out) != "nodes 1" {
		t.Errorf("it printed %q", out)
	}
}

func TestThreeNodesSurviveStopAndKillOfOne(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three nodes")
	}
	c := Start(t, Config{Nodes: 3, HeapMiB: 256})
	for i, end := range []func(testing.TB, int){c.Stop, c.Kill} {
		end(t, i)
		if err := probe(c.nodes[2].addr(plainListener), 2); err != nil {
			t.Errorf("node 2 without node %d: %v", i, err)
		}
		if err := probe(c.nodes[i].addr(plainListener), 1); err == nil {
			t.Errorf("node %d answers after its end", i)
		}
		c.Restart(t, i)
	}
}

func TestSecuredListenersComeUp(t *testing.T) {
	c := Start(t, Config{Secure: true})
	for _, list := range [][]string{c.TLSBrokers(), c.SASLBrokers(), c.SASLTLSBrokers()} {
		if len(list) != 1 || list[0] == "" {
			t.Errorf("addresses %v", list)
		}
	}
}
