package systemtest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
)

// A record of 4 MiB, more than anything asks for at once, stands among small
// ones in the input and in the table.
func TestRecordLargerThanAnyFetchIsReadEverywhere(t *testing.T) {
	onBoth(t, false, func(t *testing.T, b broker) {
		c := b.client(t)
		group := unique(t, "group")
		in, table := reka.NewStream(unique(t, "blobs"), codec.Bytes()), reka.GroupTable(group, codec.Bytes())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		large := kafka.ChangelogConfigs()
		large["max.message.bytes"] = "8388608"
		if err := c.EnsureTopics(ctx,
			kafka.TopicSpec{Name: in.Name(), Partitions: 1, Configs: map[string]string{"max.message.bytes": "8388608"}},
			kafka.TopicSpec{Name: table.Name(), Partitions: 1, Configs: large}); err != nil {
			t.Fatal(err)
		}
		big := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
		rows := map[string][]byte{"a": []byte("small"), "big": big, "z": []byte("small too")}
		e, err := emitter.New(c, in, emitter.WithCompression(kafka.NoCompression))
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"a", "big", "z"} {
			if _, err := e.EmitSync(ctx, k, rows[k]); err != nil {
				t.Fatalf("emit %s: %v", k, err)
			}
		}
		if err := e.Close(ctx); err != nil {
			t.Fatal(err)
		}
		start := func() *running {
			st := processor.Persist(table)
			g, err := processor.NewGraph(group, st, processor.Input(in, func(ctx *processor.Context, v []byte) error {
				st.Set(ctx, v)
				return nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			p, err := processor.New(c, g, processor.WithStorage(storage.Memory()), processor.WithTuning(processor.Tuning{FetchBytes: 1 << 20}))
			if err != nil {
				t.Fatal(err)
			}
			return launch(t, p)
		}
		r := start()
		v := openView(t, c, table)
		for k, want := range rows {
			until(t, func() bool { got, _, err := v.Get(k); return err == nil && bytes.Equal(got, want) },
				func() string { return "the view does not have " + k })
		}
		r.stop(t)
		r = start() // with nothing: the large row is restored
		if n := restored(r.p); n != int64(len(rows)) {
			t.Errorf("%d rows restored, want %d", n, len(rows))
		}
		r.stop(t)
	})
}
