package differential

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// parseCase reads a topology and inputs "topic key value time", and results
// "step key value time".
func parseCase(t *testing.T, topology, inputs, results string) (Case, []Output) {
	t.Helper()
	c := Case{Topology: Topology(topology)}
	for line := range strings.SplitSeq(inputs, ", ") {
		var in Input
		if _, err := fmt.Sscan(line, &in.Topic, &in.Key, &in.Value, &in.Time); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		c.Inputs = append(c.Inputs, in)
	}
	var want []Output
	for line := range strings.SplitSeq(results, ", ") {
		var o Output
		if _, err := fmt.Sscan(line, &o.Step, &o.Key, &o.Value, &o.Time); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want = append(want, o)
	}
	return c, want
}

// What the harness takes for granted, and what it keeps out of cases. When one
// of these fails with another version of Kafka Streams, a rule, a disguise or
// the generator can go.
func TestFactsAboutKafkaStreams(t *testing.T) {
	streams := Start(t)
	for name, f := range map[string][3]string{
		"null is a value in a time window": {
			"op=aggregate window=tumbling size=10 grace=0 emit=update",
			`L a x 0, L a \N 1`, "0 a@0/10 0+x 0, 1 a@0/10 0+x+null 1",
		},
		"null is no value in a sliding window": {
			"op=aggregate window=sliding size=10 grace=0 emit=update",
			`L a x 0, L a \N 1`, "0 a@0/10 0+x 0",
		},
		"a session of one instant grows without a tombstone": {
			"op=aggregate window=session gap=5 grace=0 emit=update",
			`L a x 3, L a y 3, L a z 4`, `0 a@3/3 0+x 3, 1 a@3/3 0+x+y 3, 2 a@3/3 \N 3, 2 a@3/4 0+x+y+z 4`,
		},
		"a foreign-key result of a right record has its time": {
			"op=foreignjoin kind=inner",
			"L a x:k1 9, R k1 y 1", "1 a x:k1|y 1",
		},
		"a foreign-key delete has the time of the right row": {
			"op=foreignjoin kind=inner",
			`R k1 y 9, L a x:k1 1, L a \N 2`, `1 a x:k1|y 9, 2 a \N 9`,
		},
		"a foreign-key delete of a left join has its own time": {
			"op=foreignjoin kind=left",
			`R k1 y 9, L a x:k1 1, L a \N 2`, `1 a x:k1|y 9, 2 a \N 2`,
		},
		"a versioned table forgets a delete that leaves no version": {
			"op=tableagg versioned=left",
			`L a x1 5, L a \N 5, L a y1 3`, "0 x 0+x1 5, 1 x 0+x1-x1 5, 2 y 0+y1 3",
		},
		"a versioned table passes an older version to stateless steps": {
			"op=tablemap versioned=left",
			`L a x1 5, L a y1 3`, "0 a x 5, 1 a y 3",
		},
		"a global join without a key to look up has its null result": {
			"op=streamglobal kind=left by=value",
			`R k1 y 1, L a x1 2`, "1 a x1|~ 2",
		},
		"a null value moves the time of a join's store": {
			"op=join kind=inner before=8 after=-3 grace=2",
			`R a y 9, R a \N 16, L a x 17, R a z 10`, "3 a x|z 17",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, want := parseCase(t, f[0], f[1], f[2])
			got, err := streams.Run(c)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestKafkaStreamsFailsAtANullKeyBeforeATableWait(t *testing.T) {
	c, _ := parseCase(t, "op=streamtable kind=left versioned=right grace=5", `L \N x 1`, "0 a b 0")
	if out, err := Start(t).Run(c); err == nil {
		t.Errorf("got %v, want an error", out)
	}
}
