package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// api serves the counts over HTTP. It is a reka.Runner.
type api struct {
	listener net.Listener
	server   *http.Server
}

// newAPI listens on an address; if that is taken, on a free port.
func newAPI(ctx context.Context, address string, r ranking) (*api, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	if err != nil {
		var free error
		if l, free = c.Listen(ctx, "tcp", "127.0.0.1:0"); free != nil {
			return nil, errors.Join(err, free)
		}
	}
	return &api{l, &http.Server{Handler: routes(r), ReadHeaderTimeout: 5 * time.Second}}, nil
}

func (a *api) url() string { return "http://" + a.listener.Addr().String() }

// Run serves until ctx ends.
func (a *api) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		patient, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		if a.server.Shutdown(patient) != nil {
			_ = a.server.Close() // cuts off who is still being served
		}
	})
	defer stop()
	if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func routes(r ranking) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{name}", func(w http.ResponseWriter, q *http.Request) {
		user := strings.ToLower(q.PathValue("name"))
		switch n, ok, err := r.of(user); {
		case err != nil: // the view is not ready
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case !ok:
			http.Error(w, fmt.Sprintf("no clicks of %s", user), http.StatusNotFound)
		default:
			answer(w, rank{user, n})
		}
	})
	mux.HandleFunc("GET /top", func(w http.ResponseWriter, _ *http.Request) {
		top, err := r.top(10)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		answer(w, top)
	})
	return mux
}

func answer(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client is gone: nobody to tell
}
