package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
	"github.com/rekastream/reka/window"
)

// Rows are scanned in order of their keys, over all partitions. (The example
// runs on the tester instead of a broker.)
func ExampleView_Prefix() {
	run := func(t testing.TB) {
		stock := reka.NewTable("stock", codec.Int64())
		tt := tester.New(t)
		in := tester.Input(tt, stock)
		in.Send("fruit/apple", 3)
		in.Send("fruit/pear", 5)
		in.Send("veg/leek", 7)

		var v *view.View[int64]
		tt.Start("shop", func(i *tester.Instance) (_ []reka.Runner, err error) {
			v, err = view.New(i.Client(), stock, view.WithStorage(storage.Memory()))
			return []reka.Runner{v}, err
		})
		for row, err := range v.Prefix("fruit/", view.Reverse()) {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(row.Key, row.Value)
		}
	}
	inExample(run)
	// Output:
	// fruit/pear 5
	// fruit/apple 3
}

// Watch yields a row and then its changes.
func ExampleView_Watch() {
	run := func(t testing.TB) {
		stock := reka.NewTable("stock", codec.Int64())
		tt := tester.New(t)
		in := tester.Input(tt, stock)
		in.Send("apple", 3)

		var v *view.View[int64]
		tt.Start("shop", func(i *tester.Instance) (_ []reka.Runner, err error) {
			v, err = view.New(i.Client(), stock, view.WithStorage(storage.Memory()))
			return []reka.Runner{v}, err
		})
		for change, err := range v.Watch(t.Context(), "apple") {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(change.Row.Value, change.Deleted)
			if change.Deleted {
				break
			}
			in.Delete("apple")
		}
	}
	inExample(run)
	// Output:
	// 3 false
	// 0 true
}

// The windows of a key between two times. (The rows are written by hand here;
// otherwise a task writes them.)
func ExampleWindows_Fetch() {
	run := func(t testing.TB) {
		visits := reka.NewWindowTable("visits", window.Tumbling(time.Minute, window.NoGrace), codec.Int64())
		tt := tester.New(t)
		in := tester.Input(tt, reka.NewTable(visits.Name(), visits.Codec()))
		for minute := range int64(5) {
			key := window.AppendTimeKey(nil, []byte("alice"), minute*60_000)
			in.Send(string(key), 10+minute)
		}

		var v *view.Windows[int64]
		tt.Start("shop", func(i *tester.Instance) (_ []reka.Runner, err error) {
			v, err = view.NewWindows(i.Client(), visits, view.WithStorage(storage.Memory()))
			return []reka.Runner{v}, err
		})
		for row, err := range v.Fetch("alice", time.UnixMilli(60_000), time.UnixMilli(120_000)) {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(row.Window.StartTime().UTC().Format(time.TimeOnly), row.Value)
		}
	}
	inExample(run)
	// Output:
	// 00:01:00 11
	// 00:02:00 12
}
