package transactions

import (
	"context"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/view"
)

// A log that ends in a marker, in aborted records, or in a transaction whose
// writer is gone has a view that gets ready, with the committed rows and no
// others.
func TestAViewOfATableThatIsWrittenInTransactionsIsComplete(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.commit()
		committed := r.want[0][len("0:"):]
		r.wantRow(committed)
		r.tx.Begin()
		for range 3 {
			r.keyed("aborted")
		}
		if err := r.tx.End(r.ctx(20*time.Second), false); err != nil {
			t.Fatal(err)
		}
		r.wantRow(committed)
		r.tx.Begin()
		r.keyed("open")
		if err := r.tx.Close(); err != nil {
			t.Fatal(err)
		}
		r.wantRow(committed)
		ws, err := r.client.Driver().Admin().Writers(r.ctx(20*time.Second), r.partition(0), r.partition(1), r.partition(2))
		if err != nil || len(ws) != 1 {
			t.Errorf("writers %v, %v: the case needs a transaction that is open", ws, err)
		}
	})
}

// keyed writes a row of its own, in the open transaction, and waits for its
// acknowledgement.
func (r *rig) keyed(value string) {
	r.t.Helper()
	acked := make(chan error, 1) // one run
	r.tx.Produce(kafka.Outgoing{
		TopicPartition: r.partition(1), Records: []kafka.Record{{Key: []byte(value), Value: []byte(value), Timestamp: -1}},
		Done: func(run kafka.Run) { acked <- run.Err },
	})
	select {
	case err := <-acked:
		if err != nil {
			r.t.Fatal(err)
		}
	case <-r.ctx(20 * time.Second).Done():
		r.t.Fatal("not acknowledged")
	}
}

// wantRow opens a view on an empty disk and wants one row in it.
func (r *rig) wantRow(value string) {
	r.t.Helper()
	v, err := view.New(r.newClient(nil), reka.NewTable(r.topic, codec.String()), view.WithStorage(storage.Memory()))
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }() // ends with ctx; waited for below
	if err := v.WaitReady(r.ctx(20 * time.Second)); err != nil {
		r.t.Errorf("never ready: %v", err)
	}
	rows := map[string]string{}
	for row, err := range v.All() {
		if err != nil {
			r.t.Error(err)
		}
		rows[row.Key] = row.Value
	}
	if len(rows) != 1 || rows["k"] != value {
		r.t.Errorf("rows %v, want k = %s", rows, value)
	}
	cancel()
	if err := <-ended; err != nil {
		r.t.Errorf("run: %v", err)
	}
}
