package differential

import (
	"fmt"
	"strings"
)

// Topologies returns all that the differential test runs.
func Topologies() []Topology {
	var out []Topology
	add := func(format string, a ...any) { out = append(out, Topology(fmt.Sprintf(format, a...))) }
	for _, op := range []string{"count", "reduce", "aggregate"} {
		add("op=%s", op)
	}
	add("op=count pre=rekey")
	add("op=aggregate pre=merge")
	windowChains(add)
	joinChains(add)
	tableChains(add)
	return out
}

// chains are topologies that are compared with the model only, since Kafka
// Streams has another idea of the second operator's time, or of changes that
// change nothing.
func chains() []Topology {
	var out []Topology
	add := func(format string, a ...any) { out = append(out, Topology(fmt.Sprintf(format, a...))) }
	for _, w := range []string{"tumbling size=10", "hopping size=10 advance=3", "sliding size=10", "session gap=5"} {
		for _, emit := range []string{"update", "close", "suppress"} {
			add("op=aggregate window=%s grace=3 emit=%s post=final", w, emit)
		}
	}
	add("op=count window=hopping size=10 advance=3 grace=3 emit=close post=final")
	for _, kind := range []string{"inner", "left", "outer"} {
		for _, b := range []string{"before=5 after=5 grace=0", "before=3 after=12 grace=2", "before=-3 after=8 grace=2"} {
			add("op=join kind=%s %s post=final", kind, b)
		}
		for _, v := range []string{"", " versioned=both"} {
			add("op=tablejoin kind=%s%s post=regroup", kind, v)
		}
		if kind != "outer" {
			add("op=foreignjoin kind=%s post=regroup", kind)
			add("op=streamtable kind=%s post=final", kind)
			add("op=streamtable kind=%s versioned=right grace=10 post=final", kind)
		}
	}
	for _, op := range []string{"tablefilter", "tablemap", "totable", "suppresstime wait=0", "suppresstime wait=5", "suppresstime wait=12 maxrecords=2"} {
		add("op=%s post=regroup", op)
	}
	return out
}

// windowChains adds every kind of window with every emission, with and without
// grace, and the steps that may stand around them.
func windowChains(add func(string, ...any)) {
	for _, w := range []string{"tumbling size=10", "hopping size=10 advance=5", "hopping size=10 advance=3", "sliding size=10", "session gap=5"} {
		for _, emit := range []string{"update", "close", "suppress"} {
			for _, grace := range []int{0, 4} {
				add("op=aggregate window=%s grace=%d emit=%s", w, grace, emit)
			}
		}
	}
	add("op=count window=tumbling size=1 grace=1 emit=update")
	// These are kept as panes, as their aggregates can be merged.
	add("op=count window=hopping size=10 advance=5 grace=0 emit=close")
	add("op=count window=hopping size=10 advance=3 grace=4 emit=close")
	add("op=reduce window=hopping size=12 advance=5 grace=3 emit=close")
	add("op=reduce window=sliding size=5 grace=15 emit=update")
	add("op=reduce window=session gap=3 grace=3 emit=update")
	add("op=count window=session gap=10 grace=20 emit=close")
	add("op=count window=sliding size=1 grace=2 emit=update")
	add("op=count window=session gap=0 grace=2 emit=update")
	add("op=aggregate pre=merge window=tumbling size=10 grace=2 emit=close")
	add("op=aggregate pre=merge window=session gap=4 grace=2 emit=suppress")
	add("op=aggregate pre=rekey window=hopping size=10 advance=5 grace=3 emit=close")
	add("op=aggregate pre=rekey window=session gap=5 grace=3 emit=update")
	add("op=aggregate pre=filter window=tumbling size=10 grace=3 emit=update")
	add("op=aggregate pre=filter window=tumbling size=10 grace=3 emit=close")
	add("op=count window=tumbling size=10 grace=2 emit=close post=recount")
	add("op=count window=session gap=4 grace=2 emit=close post=recount")
}

// joinChains adds joins of two streams: windows that are symmetric, lie on one
// side, or lie wholly before or after; and joins of streams with tables.
func joinChains(add func(string, ...any)) {
	bounds := []string{
		"before=5 after=5 grace=0", "before=5 after=5 grace=3", "before=3 after=12 grace=2", "before=12 after=3 grace=2",
		"before=0 after=8 grace=2", "before=8 after=0 grace=0", "before=-3 after=8 grace=2", "before=8 after=-3 grace=2",
		"before=0 after=0 grace=1", "before=-4 after=4 grace=0",
	}
	for _, kind := range []string{"inner", "left", "outer"} {
		for _, b := range bounds {
			add("op=join kind=%s %s", kind, b)
		}
	}
	add("op=join kind=inner before=5 after=5 grace=3 self=true")
	add("op=join kind=left before=5 after=2 grace=3 self=true")
	add("op=join kind=outer before=3 after=3 grace=0 self=true")
	add("op=joincount kind=inner before=5 after=5 grace=3")
	add("op=joincount kind=left before=5 after=5 grace=3")
	for _, kind := range []string{"inner", "left"} {
		add("op=streamtable kind=%s", kind)
		add("op=streamtable kind=%s versioned=right", kind)
		for _, grace := range []int{0, 2, 10} {
			add("op=streamtable kind=%s versioned=right grace=%d", kind, grace)
		}
		add("op=streamglobal kind=%s by=key", kind)
		add("op=streamglobal kind=%s by=value", kind)
	}
}

func tableChains(add func(string, ...any)) {
	for _, kind := range []string{"inner", "left", "outer"} {
		for _, v := range []string{"", " versioned=both", " versioned=left", " versioned=right"} {
			add("op=tablejoin kind=%s%s", kind, v)
		}
		if kind != "outer" {
			add("op=foreignjoin kind=%s", kind)
		}
	}
	for op := range strings.FieldsSeq("tableagg tablecount tablefilter tablemap") {
		add("op=%s", op)
	}
	add("op=tableagg versioned=left")
	add("op=tablecount versioned=left")
	add("op=totable")
	for _, op := range []string{"suppresstime", "suppresscount"} {
		add("op=%s wait=0", op)
		add("op=%s wait=5", op)
		add("op=%s wait=12 maxrecords=2", op)
	}
}
