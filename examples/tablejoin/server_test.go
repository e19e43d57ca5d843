package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
)

func TestBillsUseTheDiscountOfTheOrdersTime(t *testing.T) {
	tt := tester.New(t)
	orders, customers := tester.Input(tt, Orders), tester.Input(tt, Customers)
	var bills *view.View[Bill]
	build := func(i *tester.Instance) ([]reka.Runner, error) {
		p, v, err := parts(i.Client(), i.Storage())
		bills = v
		return []reka.Runner{p, v}, err
	}
	nine := tt.Now()
	at := func(minutes int) reka.EmitOption { return reka.At(nine.Add(time.Duration(minutes) * time.Minute)) }
	customers.Send("7", Customer{Name: "Ada", Discount: 0}, at(0))
	orders.Send("7", Order{Cents: 1_000}, at(1))
	orders.Send("7", Order{Cents: 1_000}, at(3))
	customers.Send("7", Customer{Name: "Ada Lovelace", Discount: 10}, at(2))
	orders.Send("8", Order{Cents: 250}, at(4))

	app := tt.Start("shop", build)
	want := map[string]string{
		"/bills/7": `200 {"name":"Ada Lovelace","orders":2,"cents":1900}`,
		"/bills/8": `200 {"name":"customer 8","orders":1,"cents":250}`,
		"/bills/9": `404 no such bill`,
	}
	for range 2 {
		tt.Settle()
		for path, answer := range want {
			if got := get(handler(bills), path); got != answer {
				t.Errorf("GET %s: %s, want %s", path, got, answer)
			}
		}
		app.Crash()
		if got := get(handler(bills), "/bills/7"); !strings.HasPrefix(got, "503") {
			t.Errorf("without a running view: %s", got)
		}
		app.Restart()
	}
}

func get(h http.Handler, path string) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return fmt.Sprintf("%d %s", w.Code, strings.TrimSpace(w.Body.String()))
}
