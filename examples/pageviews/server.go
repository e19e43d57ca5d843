package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/examples/internal/service"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/view"
)

// handler answers GET /regions/{region}?from=…&to=… with the counts by the
// start of their windows, both times included and in RFC 3339. Without them it
// answers with all that there are.
func handler(regions *view.Windows[int64]) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /regions/{region}", func(w http.ResponseWriter, r *http.Request) {
		from, err := moment(r, "from")
		to, err2 := moment(r, "to")
		if err = errors.Join(err, err2); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		counts := map[string]int64{}
		for row, err := range regions.Fetch(r.PathValue("region"), from, to) {
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			counts[row.Window.StartTime().UTC().Format(time.RFC3339)] = row.Value
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(counts) // the client is gone: nobody to tell
	})
	return mux
}

// moment is a time that a request names, or the zero Time.
func moment(r *http.Request, name string) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, text)
}

func parts(client *kafka.Client, st storage.Builder) (*processor.Processor, *view.Windows[int64], error) {
	g, err := counting()
	if err != nil {
		return nil, nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	if err != nil {
		return nil, nil, err
	}
	v, err := view.NewWindows(client, Regions, view.WithStorage(st))
	return p, v, err
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	p, v, err := parts(client, st)
	if err != nil {
		return nil, err
	}
	return []reka.Runner{p, v, service.Serve("127.0.0.1:8082", handler(v))}, nil
}
