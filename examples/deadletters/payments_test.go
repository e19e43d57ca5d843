package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

func TestFailedPaymentsLeaveNoTraceButALetter(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in, dead := tester.Input(tt, Payments), tester.Output(tt, Letters)
	asked := map[string]int{}
	var p *processor.Processor
	tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		g, err := booking(func(p Payment) error {
			asked[p.Bank]++
			switch {
			case p.Bank == "closed", p.Bank == "slow" && asked[p.Bank] < 3:
				return errors.New("not now")
			case p.Bank == "broken":
				panic("the vault is on fire")
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		p, err = processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return []reka.Runner{p}, err
	})
	in.Send("ada", Payment{Cents: 100, Bank: "good"})
	in.Send("ada", Payment{Cents: 20, Bank: "slow"})
	in.Send("ada", Payment{Cents: 3, Bank: "closed"})
	tt.SendRaw(Payments.Name(), 0, kafka.Record{Key: []byte("ada"), Value: []byte("no payment"), Timestamp: -1})
	in.Send("ada", Payment{Bank: "good"})
	in.Send("ada", Payment{Cents: 5, Bank: "broken"})
	in.Send("ada", Payment{Cents: 1_000, Bank: "good"})
	tt.Advance(time.Minute) // through the pauses between the attempts

	if got, _ := tester.Table(tt, Balances).Get("ada"); got != 1_120 {
		t.Errorf("balance %d, want 1120", got)
	}
	if asked["slow"] != 3 || asked["closed"] != 4 || asked["broken"] != 4 || asked["good"] != 2 {
		t.Errorf("the banks were asked %v", asked)
	}
	want := []struct{ value, phase, cause string }{
		{`{"cents":3,"bank":"closed"}`, "process", "bank closed: not now"},
		{"no payment", "decode", "invalid character"},
		{`{"cents":5,"bank":"broken"}`, "process", "the vault is on fire"},
	}
	all := dead.All()
	if len(all) != len(want) {
		t.Fatalf("%d dead letters, want %d", len(all), len(want))
	}
	for i, w := range want {
		phase, _ := all[i].Header("reka-phase")
		cause, _ := all[i].Header("reka-error")
		if string(all[i].Value) != w.value || string(phase) != w.phase || !strings.Contains(string(cause), w.cause) {
			t.Errorf("letter %d: %s, phase %s, error %s; want %+v", i, all[i].Value, phase, cause, w)
		}
	}
	if s := p.Stats().Partitions[0]; s.Skipped != 1 || s.DeadLetters != 3 {
		t.Errorf("%d skipped, %d dead letters, want 1 and 3", s.Skipped, s.DeadLetters)
	}
}
