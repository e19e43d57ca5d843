package stream_test

import (
	"fmt"
	"testing"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/window"
)

// Results are placed by the key without the window, as Kafka Streams places
// them: the windows of a key stay in order, and what reads them by key finds
// them where the key belongs.
func TestResultsOfAllWindowsOfAKeyLieInItsPartition(t *testing.T) {
	const partitions = 5
	for name, w := range map[string]window.Windows{
		"tumbling": window.Tumbling(ms(10), ms(5)), "sessions": window.Session(ms(3), ms(5)),
	} {
		t.Run(name, func(t *testing.T) {
			b := stream.NewBuilder("g")
			stream.From(b, text("in")).GroupByKey().Windowed(w).Count().To(counts("out", w))
			g, err := b.Graph()
			if err != nil {
				t.Fatal(err)
			}
			tt := tester.New(t, tester.WithPartitions(partitions))
			in := tester.Input(tt, text("in"))
			tt.CreateTopic("out", partitions)
			tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
				p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
				return []reka.Runner{p}, err
			})
			for i := range int64(40) {
				in.Send(fmt.Sprint("key-", i%4), "v", at(i*10))
			}
			n := 0
			for p := range int32(partitions) {
				for _, r := range tt.Raw("out", p) {
					key, win, err := w.SplitTopicKey(r.Key)
					if err != nil {
						t.Fatal(err)
					}
					if want := kafka.Murmur2().Partition(key, partitions); p != want {
						t.Errorf("%s[%d-%d] lies in partition %d, its key in %d", key, win.Start, win.End, p, want)
					}
					n++
				}
			}
			if n != 40 {
				t.Errorf("%d results, want 40", n)
			}
		})
	}
}
