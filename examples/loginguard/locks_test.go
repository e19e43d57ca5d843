package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/tester"
)

func app(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) }

func TestOnlyFailuresCloseToEachOtherLock(t *testing.T) {
	tt := tester.New(t)
	logins, locks := tester.Input(tt, Logins), tester.Output(tt, Locks)
	tt.Start("app", app)
	for i := range 3 {
		logins.Send("close", Login{})
		logins.Send("apart", Login{}, reka.At(tt.Now().Add(time.Duration(i)*6*time.Minute)))
		logins.Send("once in between", Login{OK: i == 1})
	}
	if got, ok := locks.Next(); !ok || got.Key != "close" {
		t.Errorf("lock of %q, %v", got.Key, ok)
	}
	if got, ok := locks.Next(); ok {
		t.Errorf("%q is locked too", got.Key)
	}
	accounts := tester.Table(tt, Accounts)
	if a, ok := accounts.Get("apart"); !ok || a.Locked || len(a.Failures) != 2 {
		t.Errorf("apart: %+v, %v", a, ok)
	}
	if a, ok := accounts.Get("once in between"); !ok || len(a.Failures) != 1 {
		t.Errorf("once in between: %+v, %v", a, ok)
	}
}

func TestCrashesForgetNoFailure(t *testing.T) {
	tt := tester.New(t)
	logins := tester.Input(tt, Logins)
	tester.Output(tt, Locks)
	guard := tt.Start("app", app)
	for range maxFailures {
		logins.Send("ada", Login{})
		tt.Settle()
		guard.Crash()
		tt.Advance(time.Second)
		guard.Restart()
	}
	if a, _ := tester.Table(tt, Accounts).Get("ada"); !a.Locked {
		t.Errorf("ada: %+v", a)
	}
}

func TestTroubleWithTheClusterLosesNothing(t *testing.T) {
	tt := tester.New(t)
	logins, locks := tester.Input(tt, Logins), tester.Output(tt, Locks)
	tt.Fail(tester.Fault{Op: tester.OpProduce, Topic: Locks.Name(), Do: tester.Delay(time.Minute)})
	tt.Fail(tester.Fault{Op: tester.OpCommit, Do: tester.Error(kafka.ErrRebalanceInProgress)})
	tt.Start("app", app)
	for range maxFailures {
		logins.Send("ada", Login{})
	}
	tt.Advance(time.Hour)
	if got := locks.Len(); got == 0 {
		t.Error("ada was never locked")
	}
	if a, _ := tester.Table(tt, Accounts).Get("ada"); !a.Locked {
		t.Errorf("ada: %+v", a)
	}
}

func TestTwoInstancesShareTheAccounts(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(6))
	logins, locks := tester.Input(tt, Logins), tester.Output(tt, Locks)
	one := tt.Start("one", app)
	two := tt.Start("two", app)
	attack := func() {
		for i := range 30 {
			logins.Send(fmt.Sprint("user-", i), Login{})
		}
	}
	attack()
	tt.Advance(time.Minute)
	attack()
	if err := one.Stop(); err != nil { // its accounts move to the other one
		t.Fatal(err)
	}
	tt.Advance(time.Minute)
	attack()
	tt.Advance(time.Minute)
	if got := locks.Len(); got != 30 {
		t.Errorf("%d locks, want 30", got)
	}
	if err := errors.Join(one.Err(), two.Err()); err != nil {
		t.Error(err)
	}
}
