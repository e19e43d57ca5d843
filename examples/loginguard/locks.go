package main

import (
	"slices"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
)

// Login is an attempt to log in; the key is the account.
type Login struct {
	OK bool `json:"ok"`
}

// Account is what is remembered of one.
type Account struct {
	Failures []time.Time `json:"failures"` // within the last ten minutes
	Locked   bool        `json:"locked"`
}

// The topics of the example. A record in Locks is an order to lock the
// account of its key; its value says why.
var (
	Logins   = reka.NewStream("logins", codec.JSON[Login]())
	Locks    = reka.NewStream("locks", codec.String())
	Accounts = reka.GroupTable("login-guard", codec.JSON[Account]())
)

const (
	maxFailures = 3
	memory      = 10 * time.Minute
)

func guard() (*processor.Graph, error) {
	accounts, locks := processor.Persist(Accounts), processor.Output(Locks)
	return processor.NewGraph("login-guard", accounts, locks,
		processor.Input(Logins, func(ctx *processor.Context, l Login) error {
			a, _ := accounts.Get(ctx)
			switch {
			case a.Locked:
				return nil
			case l.OK:
				accounts.Delete(ctx)
				return nil
			}
			a.fail(ctx.Time())
			if len(a.Failures) >= maxFailures {
				a = Account{Locked: true}
				locks.Emit(ctx, ctx.Key(), "three failed logins within ten minutes")
			}
			accounts.Set(ctx, a)
			return nil
		}))
}

// fail adds a failure and forgets those that are too old.
func (a *Account) fail(at time.Time) {
	a.Failures = slices.DeleteFunc(a.Failures, func(f time.Time) bool { return at.Sub(f) >= memory })
	a.Failures = append(a.Failures, at)
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := guard()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
