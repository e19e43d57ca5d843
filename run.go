package reka

import (
	"context"
	"errors"
	"fmt"
)

// Runner is what Run runs: processors, views, emitters.
type Runner interface {
	// Run works until ctx ends, then drains, and returns nil if everything
	// was drained.
	Run(ctx context.Context) error
}

// ErrStopTimeout says that something was not drained within its stop
// timeout.
var ErrStopTimeout = errors.New("not drained within the stop timeout")

// Run runs all of rs until ctx ends or one of them returns, then stops them
// one after the other, the last one first, each with its own draining. So
// what is listed first may be used by what is listed later until that has
// ended. It returns the errors joined; nil if ctx ended and all was drained.
// A runner that returns nil by itself ends the others too. Nothing is run, and
// an error returned, if one of rs is nil.
func Run(ctx context.Context, rs ...Runner) error {
	for i, r := range rs {
		if r == nil {
			return fmt.Errorf("reka: Run: runner %d is nil", i)
		}
	}
	type running struct {
		cancel context.CancelFunc
		done   chan struct{}
		err    error
	}
	first := make(chan struct{}, len(rs)) // one a runner: nobody blocks
	all := make([]*running, 0, len(rs))
	for _, r := range rs {
		// A runner's context keeps ctx's values and ends when its turn comes.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		x := &running{cancel: cancel, done: make(chan struct{})}
		all = append(all, x)
		go func() { // ends with its runner; waited for below
			defer close(x.done)
			x.err = r.Run(own)
			first <- struct{}{}
		}()
	}
	if len(rs) > 0 {
		select {
		case <-ctx.Done():
		case <-first:
		}
	}
	errs := make([]error, 0, len(rs))
	for i := len(all) - 1; i >= 0; i-- {
		all[i].cancel()
		<-all[i].done
		errs = append(errs, all[i].err)
	}
	return errors.Join(errs...)
}
