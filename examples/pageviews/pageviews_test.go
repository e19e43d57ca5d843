package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
)

// TestFinalCountsAndLateViews runs on one partition, so that the views of both
// regions move one stream time.
func TestFinalCountsAndLateViews(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	views, late, finals := tester.Input(tt, Views), tester.Output(tt, Late), tester.Windows(tt, Regions)
	var counts *view.Windows[int64]
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		p, v, err := parts(i.Client(), i.Storage())
		counts = v
		return []reka.Runner{p, v}, err
	})
	look := func(user, region, clock string) {
		at, err := time.Parse(time.TimeOnly, clock)
		if err != nil {
			t.Fatal(err)
		}
		views.Send(user, PageView{Page: "/", Region: region}, reka.At(at.AddDate(2024, 0, 0)))
	}
	says := func(path, want string) {
		t.Helper()
		tt.Settle()
		if got := get(handler(counts), path); got != want {
			t.Errorf("GET %s: %s, want %s", path, got, want)
		}
	}

	look("ada", "north", "12:00:00")
	look("bob", "north", "12:04:59")
	look("cyd", "south", "12:02:00")
	look("ada", "north", "12:05:00") // the next window
	look("dan", "north", "12:01:30") // out of order, within grace
	look("eve", "south", "12:05:59")
	says("/regions/north", "200 {}") // nothing is closed yet

	look("ada", "south", "12:06:00") // the first one is
	says("/regions/north", `200 {"2024-01-01T12:00:00Z":3}`)
	says("/regions/south", `200 {"2024-01-01T12:00:00Z":1}`)

	look("bob", "north", "12:04:00") // late by a moment
	app.Crash()
	look("cyd", "south", "12:11:00")
	app.Restart()
	says("/regions/north", `200 {"2024-01-01T12:00:00Z":3,"2024-01-01T12:05:00Z":1}`)
	says("/regions/south", `200 {"2024-01-01T12:00:00Z":1,"2024-01-01T12:05:00Z":2}`)
	says("/regions/south?from=2024-01-01T12:01:00Z&to=2024-01-01T12:05:00Z", `200 {"2024-01-01T12:05:00Z":2}`)
	says("/regions/east", "200 {}")

	all := late.All()
	if len(all) != 1 {
		t.Fatalf("late views: %+v", all)
	}
	missed, _ := all[0].Header(stream.LateWindows)
	if got, want := fmt.Sprintf("%s %+v %s", all[0].Key, all[0].Value, missed), "north {Page:/ Region:north} 1704110400000-1704110700000"; got != want {
		t.Errorf("late: %s, want %s", got, want)
	}

	var rows []string
	for _, r := range finals.All() {
		rows = append(rows, fmt.Sprintf("%s %s %d", r.Key, r.Window.StartTime().UTC().Format("15:04"), r.Value))
	}
	want := []string{"north 12:00 3", "south 12:00 1", "north 12:05 1", "south 12:05 2"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	if n := len(tt.Raw(Regions.Name(), 0)); n != len(want) { // none was written twice, or taken back
		t.Errorf("%d records, want %d", n, len(want))
	}
}

func get(h http.Handler, path string) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return fmt.Sprintf("%d %s", w.Code, strings.TrimSpace(w.Body.String()))
}
