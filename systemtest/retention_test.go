package systemtest

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/systemtest/fakekafka"
)

// The brokers delete after an hour by default, the records are of last year,
// and the processor stops before it has read its loop.
func TestLoopRecordsOfLastYearOutliveRetentionWhileTheProcessorIsDown(t *testing.T) {
	fake := fakekafka.Start(t, fakekafka.Config{Options: []kfake.Opt{kfake.BrokerConfigs(map[string]string{"log.retention.ms": "3600000"})}})
	b := broker{brokers: fake.Brokers()}
	c := b.client(t)
	in, group := reka.NewStream(unique(t, "in"), codec.String()), unique(t, "group")
	table := reka.GroupTable(group, codec.String())
	b.topics(t, c, 1, in.Name())
	lastYear := reka.At(time.Now().AddDate(-1, 0, 0))
	e, err := emitter.New(c, in)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"a", "b", "c"} {
		if _, err := e.EmitSync(t.Context(), k, "v", lastYear); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := func(read error) *running {
		st, loop := processor.Persist(table), processor.Loop(codec.String())
		g, err := processor.NewGraph(group, st, processor.Input(in, func(ctx *processor.Context, v string) error {
			loop.Emit(ctx, "to-"+ctx.Key(), v)
			return nil
		}), loop.On(func(ctx *processor.Context, v string) error {
			st.Set(ctx, v)
			return read
		}), processor.OnError(processor.Process, processor.Retry(1, time.Hour, processor.Fail)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := processor.New(c, g, processor.WithStorage(storage.Memory()))
		if err != nil {
			t.Fatal(err)
		}
		return launch(t, p)
	}
	r := start(errors.New("not now"))
	until(t, func() bool { return committedOf(t, c, group, in.Name(), 1)[0] == 3 }, func() string { return "the inputs are not committed" })
	r.stop(t)

	fake.ApplyRetention()
	if n := len(fold(t, c, in.Name())); n != 0 {
		t.Fatalf("retention left %d records of the input: the test proves nothing", n)
	}
	r = start(nil)
	defer r.stop(t)
	until(t, func() bool { return len(fold(t, c, table.Name())) == 3 }, func() string { return "the loop's records are lost" })
	if configs, err := c.Driver().Admin().Configs(t.Context(), group+"-loop"); err != nil || configs["retention.ms"] != "-1" {
		t.Errorf("retention.ms of the loop is %q, %v", configs["retention.ms"], err)
	}
}
