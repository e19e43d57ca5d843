package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
)

// scene is the guard under test, on one partition: all cards move one stream
// time.
type scene struct {
	t        *testing.T
	app      *tester.Instance
	payments *tester.InputTopic[Payment]
	alerts   *tester.OutputTopic[Alert]
	cards    *tester.TableTopic[Card]
}

func play(t *testing.T) *scene {
	t.Helper()
	tt := tester.New(t, tester.WithPartitions(1))
	return &scene{
		t: t, payments: tester.Input(tt, Payments), alerts: tester.Output(tt, Alerts), cards: tester.Table(tt, Cards),
		app: tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) }),
	}
}

var noon = time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)

func (s *scene) declined(card string, cents int64, minute int) {
	s.payments.Send(card, Payment{cents, true}, reka.At(noon.Add(time.Duration(minute)*time.Minute)))
}

func (s *scene) accepted(card string, minute int) {
	s.payments.Send(card, Payment{1, false}, reka.At(noon.Add(time.Duration(minute)*time.Minute)))
}

// raised checks which alerts came since the last call.
func (s *scene) raised(want ...string) {
	s.t.Helper()
	var got []string
	for {
		r, ok := s.alerts.Next()
		if !ok {
			break
		}
		got = append(got, fmt.Sprintf("%s: %d of %d at %d", r.Key, r.Value.Declined, r.Value.Cents, int(r.Time.Sub(noon).Minutes())))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("alerts %q, want %q", got, want)
	}
}

func (s *scene) remembers(want ...string) {
	s.t.Helper()
	if got := s.cards.Keys(); !slices.Equal(got, want) {
		s.t.Errorf("remembers %q, want %q", got, want)
	}
}

func TestThreeDeclinedPaymentsInTenMinutesRaiseOneAlert(t *testing.T) {
	s := play(t)
	s.declined("a", 100, 0)
	s.declined("b", 100, 1)
	s.accepted("a", 4)
	s.declined("a", 200, 5)
	s.raised()
	s.declined("a", 300, 10) // ten minutes are included
	s.raised("a: 3 of 600 at 10")
	s.declined("a", 400, 11) // one alert is enough
	s.declined("b", 100, 8)
	s.declined("b", 100, 12) // eleven minutes are too long
	s.raised()
	s.declined("b", 100, 9) // out of order, and yet the third one
	s.raised("b: 3 of 300 at 9")
}

func TestCardsAreForgottenAfterAnHourThroughCrashes(t *testing.T) {
	s := play(t)
	for minute := range 3 {
		s.declined("a", 100, minute)
	}
	s.raised("a: 3 of 300 at 2")
	s.app.Crash()
	s.app.Restart()
	s.declined("b", 100, 30)
	s.accepted("c", 61)
	s.remembers("a", "b")
	s.accepted("c", 62) // an hour since the last one
	s.remembers("b")
	s.app.Crash()
	s.declined("b", 100, 89) // a new hour
	s.accepted("c", 148)
	s.app.Restart()
	s.remembers("b")
	s.accepted("c", 149)
	s.remembers()
	s.raised()
	for minute := 150; minute < 153; minute++ { // after that there can be another one
		s.declined("a", 10, minute)
	}
	s.raised("a: 3 of 30 at 152")
}
