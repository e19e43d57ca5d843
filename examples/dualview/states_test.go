package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
)

func TestOneTopicAsStreamAndAsTable(t *testing.T) {
	tt := tester.New(t)
	machines := tester.Input(tt, Machines)
	entered, now, broken := tester.Table(tt, Entered), tester.Table(tt, Now), tester.Output(tt, Broken)
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) })
	wants := func(stream, table map[string]int64) {
		t.Helper()
		if got := entered.All(); !maps.Equal(got, stream) {
			t.Errorf("as a stream %v, want %v", got, stream)
		}
		if got := now.All(); !maps.Equal(got, table) {
			t.Errorf("as a table %v, want %v", got, table)
		}
	}

	for _, m := range []string{"m1", "m2", "m3"} {
		machines.Send(m, "ok")
	}
	wants(map[string]int64{"ok": 3}, map[string]int64{"ok": 3})
	machines.Send("m1", "broken")
	machines.Send("m2", "broken")
	wants(map[string]int64{"ok": 3, "broken": 2}, map[string]int64{"ok": 1, "broken": 2})
	app.Crash()
	machines.Send("m1", "ok")
	app.Restart()
	wants(map[string]int64{"ok": 4, "broken": 2}, map[string]int64{"ok": 2, "broken": 1})
	machines.Send("m3", "ok") // said again
	machines.Delete("m2")     // taken away: nothing for the stream
	wants(map[string]int64{"ok": 5, "broken": 2}, map[string]int64{"ok": 2, "broken": 0})

	got := map[string][]string{}
	for _, r := range broken.All() {
		v := r.Value
		if r.Null {
			v = "-"
		}
		got[r.Key] = append(got[r.Key], v)
	}
	want := map[string][]string{"m1": {"broken", "-"}, "m2": {"broken", "-"}}
	if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("broken machines %v, want %v", got, want)
	}
}
