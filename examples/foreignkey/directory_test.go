package main

import (
	"maps"
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
)

func TestDirectoryFollowsEmployeesAndDepartments(t *testing.T) {
	tt := tester.New(t)
	tt.CreateTopic(Employees.Name(), 4, "cleanup.policy", "compact")
	tt.CreateTopic(Departments.Name(), 2, "cleanup.policy", "compact")
	employees, departments := tester.Input(tt, Employees), tester.Input(tt, Departments)
	entries, changes := tester.Table(tt, Directory), tester.Output(tt, Directory)
	app := tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) { return build(i.Client(), i.Storage()) })
	written := 0
	// wants checks the directory, and how many of its rows were written since
	// the last call.
	wants := func(changed int, want map[string]Entry) {
		t.Helper()
		if got := entries.All(); !maps.Equal(got, want) {
			t.Errorf("directory %v, want %v", got, want)
		}
		if n := changes.Len() - written; n != changed {
			t.Errorf("%d rows written, want %d", n, changed)
		}
		written = changes.Len()
	}

	employees.Send("1", Employee{"Ada", "r&d"})
	employees.Send("2", Employee{"Bob", "r&d"})
	employees.Send("3", Employee{"Cyd", ""})
	wants(3, map[string]Entry{"1": {"Ada", "to be found", 0}, "2": {"Bob", "to be found", 0}, "3": {"Cyd", "to be found", 0}})

	departments.Send("r&d", Department{"Research", 3})
	departments.Send("ops", Department{"Operations", 1})
	wants(2, map[string]Entry{"1": {"Ada", "Research", 3}, "2": {"Bob", "Research", 3}, "3": {"Cyd", "to be found", 0}})

	employees.Send("2", Employee{"Bob", "ops"}) // he moves
	wants(1, map[string]Entry{"1": {"Ada", "Research", 3}, "2": {"Bob", "Operations", 1}, "3": {"Cyd", "to be found", 0}})

	app.Crash()
	departments.Send("r&d", Department{"Research", 5}) // the department does, without him
	app.Restart()
	wants(1, map[string]Entry{"1": {"Ada", "Research", 5}, "2": {"Bob", "Operations", 1}, "3": {"Cyd", "to be found", 0}})

	departments.Delete("ops")
	employees.Delete("1")
	wants(2, map[string]Entry{"2": {"Bob", "to be found", 0}, "3": {"Cyd", "to be found", 0}})
}
