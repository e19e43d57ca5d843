package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
)

// TestVisitsGrowTogetherAndEnd runs on one partition, so that all users move
// one stream time.
func TestVisitsGrowTogetherAndEnd(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	clicks, ended := tester.Input(tt, Clicks), tester.Output(tt, Ended)
	tt.CreateTopic(Visits.Name(), 1)
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) })
	nine := time.Date(2024, 1, 1, 9, 0, 0, 0, time.UTC)
	click := func(user, page string, minute int) {
		clicks.Send(user, page, reka.At(nine.Add(time.Duration(minute)*time.Minute)))
	}

	click("ada", "/", 0)
	click("ada", "/shoes", 30) // half an hour: the same visit
	click("bob", "/", 31)
	click("ada", "/hats", 61) // another visit...
	app.Crash()
	click("ada", "/", 60) // ...or not: this one joins both
	app.Restart()
	click("bob", "/about", 62) // more than half an hour
	tt.Settle()
	wants(t, tt, "ada 0-0 [/]", "ada 0-0 gone", "ada 0-30 [/ /shoes]",
		"bob 31-31 [/]", "ada 61-61 [/hats]",
		"ada 0-30 gone", "ada 61-61 gone", "ada 0-61 [/ /hats /shoes]",
		"bob 62-62 [/about]")

	click("cyd", "/", 200)
	got := []string{}
	for _, r := range ended.All() {
		got = append(got, fmt.Sprintf("%s %v at %s", r.Key, r.Value, r.Time.UTC().Format("15:04")))
	}
	want := []string{"bob {0 [/]} at 09:31", "ada {61 [/ /hats /shoes]} at 10:01", "bob {0 [/about]} at 10:02"}
	if !slices.Equal(got, want) {
		t.Errorf("ended:\n got %q\nwant %q", got, want)
	}
}

// wants checks all that was written to Visits, with minutes past nine.
func wants(t *testing.T, tt *tester.Tester, want ...string) {
	t.Helper()
	var got []string
	for _, r := range tt.Raw(Visits.Name(), 0) {
		user, w, err := visit.SplitTopicKey(r.Key)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s %d-%d gone", user, minute(w.Start), minute(w.End))
		if r.Value != nil {
			pages, err := Visits.Codec().Decode(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			text = fmt.Sprintf("%s %d-%d %v", user, minute(w.Start), minute(w.End), pages)
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("visits:\n got %q\nwant %q", got, want)
	}
}

func minute(ms int64) int { return int(ms/60_000%1440) - 9*60 }
