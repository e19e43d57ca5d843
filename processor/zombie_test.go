package processor_test

import (
	"testing"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// A former owner that was paused may write a row after this one has gone
// further. Without transactions nothing stops it; the present owner notices
// the gap in its changelog and has the last word.
func TestRowsWrittenByAFormerOwnerAreWrittenAgain(t *testing.T) {
	tt := tester.New(t, tester.WithPartitions(1))
	in := tester.Input(tt, clicks)
	tester.Output(tt, totals)
	tt.Start("app", counter(processor.WithGuarantee(processor.WithoutTransactions)))
	for range 8 {
		in.Send("k", "/")
	}
	in.Send("other", "/")
	tt.Settle()
	five := []byte{0, 0, 0, 0, 0, 0, 0, 5}
	tt.SendRaw("counter-table", 0, kafka.Record{Key: []byte("k"), Value: five, Timestamp: 1},
		kafka.Record{Key: []byte("never-seen"), Value: five, Timestamp: 1})
	in.Send("other", "/")
	got := tester.Table(tt, counts).All()
	equal(t, "k", got["k"], 8)
	equal(t, "other", got["other"], 2)
	if v, ok := got["never-seen"]; ok {
		t.Errorf("never-seen = %d, want no row", v)
	}
}
