package view_test

import (
	"context"
	"fmt"
	"testing"
)

// exampleTB is as much of a testing.TB as the tester needs: an example has
// none of its own.
type exampleTB struct {
	testing.TB
	cleanups []func()
	ctx      context.Context
}

func (e *exampleTB) Helper()                           {}
func (e *exampleTB) Log(...any)                        {}
func (e *exampleTB) Logf(string, ...any)               {}
func (e *exampleTB) Name() string                      { return "example" }
func (e *exampleTB) Failed() bool                      { return false }
func (e *exampleTB) Context() context.Context          { return e.ctx }
func (e *exampleTB) Cleanup(f func())                  { e.cleanups = append(e.cleanups, f) }
func (e *exampleTB) Error(args ...any)                 { fmt.Println(args...) }
func (e *exampleTB) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (e *exampleTB) Fatal(args ...any)                 { fmt.Println(args...) }
func (e *exampleTB) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// inExample runs f as a test would be run.
func inExample(f func(testing.TB)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := &exampleTB{ctx: ctx}
	f(e)
	for i := len(e.cleanups) - 1; i >= 0; i-- {
		e.cleanups[i]()
	}
}
