package reka_test

import (
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/window"
)

func TestWindowTableIsWhatWasDeclared(t *testing.T) {
	ws := window.Hopping(time.Hour, time.Minute, window.NoGrace)
	table := reka.NewWindowTable("visits", ws, codec.Int64())
	if table.Name() != "visits" || table.Windows() != ws || table.Codec() != codec.Int64() {
		t.Errorf("%+v", table)
	}
	if _, is := any(table).(reka.Topic[int64]); is {
		t.Error("a table of windows is a topic")
	}
}
