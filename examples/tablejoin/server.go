package main

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/examples/internal/service"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/view"
)

// handler answers GET /bills/{customer} from the view. "Not ready" and "not
// found" are different answers.
func handler(bills *view.View[Bill]) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /bills/{customer}", func(w http.ResponseWriter, r *http.Request) {
		bill, ok, err := bills.Get(r.PathValue("customer"))
		switch {
		case errors.Is(err, view.ErrNotReady):
			http.Error(w, "try again soon", http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case !ok:
			http.Error(w, "no such bill", http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(bill) // the client is gone: nobody to tell
		}
	})
	return mux
}

func parts(client *kafka.Client, st storage.Builder) (*processor.Processor, *view.View[Bill], error) {
	g, err := billing()
	if err != nil {
		return nil, nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	if err != nil {
		return nil, nil, err
	}
	v, err := view.New(client, Bills, view.WithStorage(st))
	return p, v, err
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	p, v, err := parts(client, st)
	if err != nil {
		return nil, err
	}
	return []reka.Runner{p, v, service.Serve("127.0.0.1:8081", handler(v))}, nil
}
