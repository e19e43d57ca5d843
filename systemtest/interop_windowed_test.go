package systemtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/systemtest/realkafka"
	"github.com/rekastream/reka/view"
	"github.com/rekastream/reka/window"
)

// windowsProgram reads and writes results of windows with Kafka Streams.
const windowsProgram = "testdata/Windows.java"

// Windows of the tests with Kafka Streams. Nothing is late for them.
var (
	interopTumbling = window.Tumbling(time.Second, 24*time.Hour)
	interopSession  = window.Session(300*time.Millisecond, 24*time.Hour)
)

// interopKeys are keys of several lengths, some of which go on as others, or
// as times, or hold the bytes that encodings make use of.
var interopKeys = []string{
	"a", "ab", "a\x00", "a\x00\xff", "a\x00\x01", "\x00", "\x00\x00\x01\x8c\xc2\x51\xf4\x00", "\xff", "\xff\xff\xff\xff\xff\xff\xff\xff",
	"grün", "sixteen bytes ok", "a\x00\x00\x01\x8c\xc2\x51\xf4\x00", strings.Repeat("long ", 60),
}

const interopPartitions = 4

// windowed names a result, as "key in hex, start, end".
func windowed(key []byte, w window.Window) string {
	return fmt.Sprintf("x%x %d %d", key, w.Start, w.End)
}

// interop is a topic of records, and what counts by window and session are of
// it.
type interop struct {
	b             broker
	c             *kafka.Client
	input         string
	n             int
	windows       map[string]int64
	sessions      map[string]int64
	byKey         map[string][]int64 // times, while it is made
	time, session string             // topics of results
}

func newInterop(t *testing.T) *interop {
	t.Helper()
	b := broker{brokers: realkafka.Shared(t).Brokers()}
	in := &interop{
		b: b, c: b.client(t), n: 300, input: unique(t, "input"), time: unique(t, "time"), session: unique(t, "session"),
		windows: map[string]int64{}, sessions: map[string]int64{}, byKey: map[string][]int64{},
	}
	b.topics(t, in.c, interopPartitions, in.input, in.time, in.session)
	p, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.DefaultProduceTopic(in.input))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	day := time.Now().UTC().Truncate(24*time.Hour).UnixMilli() - 24*time.Hour.Milliseconds()
	var records []*kgo.Record
	for i := range in.n {
		key, at := interopKeys[i%len(interopKeys)], day+rand.Int64N(10_000)
		in.byKey[key] = append(in.byKey[key], at)
		records = append(records, &kgo.Record{Key: []byte(key), Value: []byte("v"), Timestamp: time.UnixMilli(at)})
	}
	if err := p.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	in.expect()
	return in
}

// expect works out the counts by hand.
func (in *interop) expect() {
	size, gap := interopTumbling.Size(), interopSession.Gap()
	for key, times := range in.byKey {
		slices.Sort(times)
		var s window.Window
		n := int64(0)
		for _, at := range times {
			start := at - at%size
			in.windows[windowed([]byte(key), window.Window{Start: start, End: start + size})]++
			if n > 0 && at > s.End+gap {
				in.sessions[windowed([]byte(key), s)] = n
				n = 0
			}
			if n++; n == 1 {
				s.Start = at
			}
			s.End = at
		}
		in.sessions[windowed([]byte(key), s)] = n
	}
}

// java runs the program against the topics of results.
func (in *interop) java(t *testing.T, mode string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	size := strconv.FormatInt(interopTumbling.Size(), 10)
	return realkafka.RunJava(ctx, t, windowsProgram, append([]string{mode, in.b.brokers[0], size, in.time, in.session}, args...)...)
}

func TestWindowedResultsAreReadByKafkaStreamsDeserialisers(t *testing.T) {
	in := newInterop(t)
	b := stream.NewBuilder(unique(t, "group"))
	by := stream.From(b, reka.NewStream(in.input, codec.Bytes())).GroupByKey()
	by.Windowed(interopTumbling).Count(stream.Named("time")).To(reka.NewWindowTable(in.time, interopTumbling, codec.Int64()))
	by.Windowed(interopSession).Count(stream.Named("session")).To(reka.NewWindowTable(in.session, interopSession, codec.Int64()))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	p, err := processor.New(in.c, g, processor.WithStorage(storage.Memory()))
	if err != nil {
		t.Fatal(err)
	}
	r := launch(t, p)
	until(t, func() bool { // each record has a result at least
		return recordsIn(t, in.c, in.time) >= in.n && recordsIn(t, in.c, in.session) >= in.n
	}, func() string { return "results are missing" })
	r.stop(t)

	got := map[string]map[string]int64{in.time: {}, in.session: {}}
	for line := range strings.Lines(in.java(t, "read")) {
		f := strings.Fields(line)
		if len(f) != 6 {
			t.Fatalf("the program printed %q", line)
		}
		key, err := hex.DecodeString(f[2][1:])
		if err != nil {
			t.Fatal(err)
		}
		if want := in.c.Partitioner().Partition(key, interopPartitions); f[1] != strconv.Itoa(int(want)) {
			t.Errorf("%q lies in partition %s, its key belongs to %d", line, f[1], want)
		}
		result := strings.Join(f[2:5], " ")
		if f[5] == "null" {
			delete(got[f[0]], result)
			continue
		}
		value, err := hex.DecodeString(f[5])
		if err != nil || len(value) != 8 {
			t.Fatalf("value in %q: %v", line, err)
		}
		got[f[0]][result] = int64(binary.BigEndian.Uint64(value))
	}
	sameCounts(t, in.windows, got[in.time])
	sameCounts(t, in.sessions, got[in.session])
}

func TestWindowedResultsOfKafkaStreamsAreReadByViewsAndSplitKeys(t *testing.T) {
	in := newInterop(t)
	in.java(t, "write", strconv.FormatInt(interopSession.Gap(), 10), in.input, strconv.Itoa(in.n), t.TempDir())
	for _, c := range []struct {
		topic   string
		windows window.Windows
		want    map[string]int64
	}{{in.time, interopTumbling, in.windows}, {in.session, interopSession, in.sessions}} {
		in.splits(t, c.topic, c.windows, c.want)
		v := openWindows(t, in.c, reka.NewWindowTable(c.topic, c.windows, codec.Int64()))
		all, fetched := map[string]int64{}, map[string]int64{}
		gather(t, all, v.All(time.Time{}, time.Time{}))
		sameCounts(t, c.want, all)
		for _, key := range interopKeys {
			gather(t, fetched, v.Fetch(key, time.Time{}, time.Time{}))
		}
		sameCounts(t, c.want, fetched)
	}
}

// splits reads a topic's keys, and writes each of them again.
func (in *interop) splits(t *testing.T, topic string, ws window.Windows, want map[string]int64) {
	t.Helper()
	got := map[string]int64{}
	for p, records := range readPartitions(t.Context(), t, in.c, topic) {
		for _, r := range records {
			key, w, err := ws.SplitTopicKey(r.Key)
			if err != nil {
				t.Fatal(err)
			}
			if again := ws.AppendTopicKey(nil, key, w); !bytes.Equal(again, r.Key) {
				t.Errorf("key %x of %s, written again, is %x", r.Key, topic, again)
			}
			if place := in.c.Partitioner().Partition(key, interopPartitions); place != int32(p) {
				t.Errorf("Kafka Streams places %s in %d, Reka would in %d", windowed(key, w), p, place)
			}
			if r.Value == nil {
				delete(got, windowed(key, w))
			} else {
				got[windowed(key, w)] = int64(binary.BigEndian.Uint64(r.Value))
			}
		}
	}
	sameCounts(t, want, got)
}

func gather(t *testing.T, into map[string]int64, rows func(func(reka.WindowRow[int64], error) bool)) {
	t.Helper()
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		into[windowed([]byte(row.Key), row.Window)] += row.Value
	}
}

func sameCounts(t *testing.T, want, got map[string]int64) {
	t.Helper()
	if maps.Equal(want, got) {
		return
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s is %d, want %d", k, got[k], n)
		}
	}
	for k, n := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s is %d, want none", k, n)
		}
	}
}

// recordsIn returns how many records a topic has.
func recordsIn(t *testing.T, c *kafka.Client, topic string) int {
	t.Helper()
	return len(readAll(t.Context(), t, c, topic))
}

// openWindows runs a view until the test ends, and waits until it is ready.
func openWindows[T any](t *testing.T, c *kafka.Client, table reka.WindowTable[T]) *view.Windows[T] {
	t.Helper()
	v, err := view.NewWindows(c, table, view.WithStorage(storage.Memory()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	result := make(chan error, 1)
	go func() { result <- v.Run(ctx) }() // the cleanup waits
	t.Cleanup(func() {
		cancel()
		if err := <-result; err != nil {
			t.Errorf("view: %v", err)
		}
	})
	wait, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	if err := v.WaitReady(wait); err != nil {
		t.Fatal(err)
	}
	return v
}
