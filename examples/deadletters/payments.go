package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
)

// Payment is money that comes in; the key is the account.
type Payment struct {
	Cents int64  `json:"cents"`
	Bank  string `json:"bank"`
}

// The topics of the example. A dead letter has the bytes of the record that
// failed, whatever they are, and the cause in its headers.
var (
	Payments = reka.NewStream("payments", codec.JSON[Payment]())
	Balances = reka.GroupTable("payments-booking", codec.Int64())
	Letters  = reka.NewStream(letters, codec.Bytes())
)

const letters = "payments-dead-letters"

// bank is asked whether it takes a payment.
type bank func(Payment) error

var errNothing = errors.New("a payment of nothing")

func booking(ask bank) (*processor.Graph, error) {
	balances := processor.Persist(Balances)
	return processor.NewGraph("payments-booking", balances,
		processor.OnError(processor.Decode, processor.DeadLetters(letters)),
		processor.OnError(processor.Process, processor.Retry(3, 100*time.Millisecond, processor.DeadLetters(letters))),
		processor.Input(Payments, func(ctx *processor.Context, p Payment) error {
			if p.Cents == 0 {
				return processor.AsSkip(errNothing)
			}
			balance, _ := balances.Get(ctx)
			balances.Set(ctx, balance+p.Cents) // void if the bank says no
			if err := ask(p); err != nil {
				return fmt.Errorf("bank %s: %w", p.Bank, err)
			}
			return nil
		}))
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := booking(func(Payment) error { return nil })
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
