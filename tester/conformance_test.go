package tester

import (
	"context"
	"testing"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/kafka/kafkatest"
)

// The tester's driver passes the suite that the drivers over real
// connections pass.
func TestDriverConforms(t *testing.T) {
	kafkatest.Run(t, func(t *testing.T) kafkatest.Env {
		tt := New(t)
		t.Cleanup(tt.w.hold(false)) // the suite waits by itself
		second := tt.w.newIncarnation("second", 1)
		t.Cleanup(func() {
			if err := second.Close(); err != nil {
				t.Error(err)
			}
		})
		return kafkatest.Env{
			Driver:  tt.Client().Driver(),
			Second:  second,
			Advance: func(d time.Duration) { tt.Advance(d) },
			Control: func(t *testing.T, tp kafka.TopicPartition) { tt.WriteControl(tp.Topic, tp.Partition) },
			Compact: func(t *testing.T, topic string) { tt.Compact(topic) },
			Elect: func(_ *testing.T, tp kafka.TopicPartition) {
				end, err := second.Admin().Offsets(context.Background(), kafka.HighWatermark, tp)
				if err != nil {
					t.Fatal(err)
				}
				tt.Truncate(tp.Topic, tp.Partition, end[tp])
			},
			Truncate: func(_ *testing.T, tp kafka.TopicPartition, offset int64, records ...kafka.Record) {
				tt.Truncate(tp.Topic, tp.Partition, offset, records...)
			},
		}
	})
}
