package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
)

func app(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) }

func TestPeopleMoveGrowOlderAndDie(t *testing.T) {
	tt := tester.New(t)
	people, regions := tester.Input(tt, People), tester.Table(tt, Regions)
	tt.Start("app", app)
	wants := func(want map[string]Population) {
		t.Helper()
		if got := regions.All(); !maps.Equal(got, want) {
			t.Errorf("regions %v, want %v", got, want)
		}
	}

	people.Send("ada", Person{"north", 36})
	people.Send("bob", Person{"north", 20})
	people.Send("cyd", Person{"south", 50})
	wants(map[string]Population{"north": {2, 56}, "south": {1, 50}})
	people.Send("ada", Person{"south", 36}) // she moves
	wants(map[string]Population{"north": {1, 20}, "south": {2, 86}})
	people.Send("cyd", Person{"south", 51}) // a birthday
	wants(map[string]Population{"north": {1, 20}, "south": {2, 87}})
	people.Delete("bob") // the north is empty
	wants(map[string]Population{"south": {2, 87}})
	people.Delete("bob")
	people.Delete("nobody")
	wants(map[string]Population{"south": {2, 87}})
}

func TestPopulationIsRightAfterManyMovesAndCrashes(t *testing.T) {
	tt := tester.New(t)
	people, regions := tester.Input(tt, People), tester.Table(tt, Regions)
	instance := tt.Start("app", app)
	r := rand.New(rand.NewPCG(1, 2))
	alive := map[string]Person{}
	for round := range 300 {
		name := fmt.Sprint("person-", r.IntN(20))
		if r.IntN(5) == 0 {
			people.Delete(name)
			delete(alive, name)
		} else {
			alive[name] = Person{fmt.Sprint("region-", r.IntN(6)), r.IntN(90)}
			people.Send(name, alive[name])
		}
		if round%60 == 59 {
			instance.Crash()
			instance.Restart()
		}
	}
	want := map[string]Population{}
	for _, p := range alive {
		all := want[p.Region]
		want[p.Region] = Population{all.People + 1, all.Years + p.Age}
	}
	if got := regions.All(); !maps.Equal(got, want) {
		t.Errorf("regions %v, want %v", got, want)
	}
}
