package view_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage/badgerstore"
	"github.com/rekastream/reka/view"
)

// A view answers an HTTP handler. "Not ready" and "no such row" are different
// answers.
func Example() {
	scores := reka.NewTable("scores", codec.Int64())
	client, err := kafka.NewClient([]string{"localhost:9092"})
	if err != nil {
		log.Fatal(err)
	}
	v, err := view.New(client, scores, view.WithStorage(badgerstore.In("/var/lib/scores")))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("GET /scores/{name}", func(w http.ResponseWriter, r *http.Request) {
		score, ok, err := v.Get(r.PathValue("name"))
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case !ok:
			http.NotFound(w, r)
		default:
			fmt.Fprintln(w, score)
		}
	})
	if err := v.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
