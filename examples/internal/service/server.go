package service

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rekastream/reka"
)

// Serve returns an HTTP server as a part of a service.
func Serve(addr string, h http.Handler) reka.Runner {
	return &server{http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: 5 * time.Second}}
}

type server struct{ http.Server }

// Run serves until ctx ends, and finishes the requests that it is at.
func (s *server) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.ListenAndServe() }() // ends with Shutdown; waited for below
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := s.Shutdown(patient)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
