package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// reader follows all topics, read committed, and keeps what it sees.
type reader struct {
	client *kgo.Client
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	at   map[string]map[int32]int64 // guarded by mu; next offset by topic and partition
	seen seen                       // guarded by mu
	bad  []string                   // guarded by mu; records that are not what the service writes
}

// seen is what the topics hold, in the order of each partition.
type seen struct {
	Inputs        []record[event]              `json:"inputs"`
	Effects       []record[effect]             `json:"effects"`
	Nth           []record[event]              `json:"nth"`
	SecondEffects []record[effect]             `json:"second_effects"`
	Folds         map[string]map[string]string `json:"folds"` // by table topic, then by key
}

// record is one of a topic, with its place.
type record[T any] struct {
	Key       string `json:"key"`
	Value     T      `json:"value"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

func newReader(addrs []string) (*reader, error) {
	tables := []string{tallyTable.Name(), secondTable.Name()}
	c, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ClientID("soak-reader"),
		kgo.ConsumeTopics(append([]string{eventsTopic, effectsTopic, nthTopic, secondTopic}, tables...)...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond), kgo.MetadataMinAge(200*time.Millisecond))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &reader{client: c, cancel: cancel, done: make(chan struct{}), at: map[string]map[int32]int64{}}
	r.seen.Folds = map[string]map[string]string{}
	for _, t := range tables {
		r.seen.Folds[t] = map[string]string{}
	}
	go r.run(ctx) // ends with close, which waits
	return r, nil
}

func (r *reader) run(ctx context.Context) {
	defer close(r.done)
	for ctx.Err() == nil {
		fetches := r.client.PollFetches(ctx) // errors pass, or the drain does not end
		r.mu.Lock()
		fetches.EachRecord(r.take)
		r.mu.Unlock()
	}
}

// take is called with mu held.
func (r *reader) take(rec *kgo.Record) {
	if r.at[rec.Topic] == nil {
		r.at[rec.Topic] = map[int32]int64{}
	}
	if rec.Offset < r.at[rec.Topic][rec.Partition] {
		return // read again after a reset
	}
	r.at[rec.Topic][rec.Partition] = rec.Offset + 1
	if rec.Attrs.IsControl() {
		return
	}
	var err error
	switch rec.Topic {
	case eventsTopic:
		err = keep(&r.seen.Inputs, rec)
	case effectsTopic:
		err = keep(&r.seen.Effects, rec)
	case nthTopic:
		err = keep(&r.seen.Nth, rec)
	case secondTopic:
		err = keep(&r.seen.SecondEffects, rec)
	default:
		if fold := r.seen.Folds[rec.Topic]; rec.Value == nil {
			delete(fold, string(rec.Key))
		} else {
			fold[string(rec.Key)] = string(rec.Value)
		}
	}
	if err != nil {
		r.bad = append(r.bad, fmt.Sprintf("%s/%d@%d: %v", rec.Topic, rec.Partition, rec.Offset, err))
	}
}

func keep[T any](to *[]record[T], rec *kgo.Record) error {
	out := record[T]{Key: string(rec.Key), Partition: rec.Partition, Offset: rec.Offset}
	if err := json.Unmarshal(rec.Value, &out.Value); err != nil {
		return err
	}
	*to = append(*to, out)
	return nil
}

// reached reports whether everything below ends has been read.
func (r *reader) reached(ends map[string]map[int32]int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for topic, parts := range ends {
		for p, end := range parts {
			if at := r.at[topic][p]; at < end {
				return fmt.Errorf("the checker has read %s/%d up to %d of %d", topic, p, at, end)
			}
		}
	}
	return nil
}

// lacking says which outputs are not there yet, "" if none.
func (r *reader) lacking(want int64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.seen
	ids := func(list []record[effect]) map[int64]bool {
		m := make(map[int64]bool, len(list))
		for _, e := range list {
			m[e.Value.ID] = true
		}
		return m
	}
	var wantSecond int
	first, second := ids(s.Effects), ids(s.SecondEffects)
	missing := map[int32]int{}
	for _, e := range s.Inputs {
		if e.Value.Seq%every == 0 {
			wantSecond++
		}
		if !first[e.Value.ID] {
			missing[e.Partition]++
		}
	}
	switch {
	case int64(len(s.Inputs)) < want:
		return fmt.Sprintf("%d of %d events are in their topic", len(s.Inputs), want)
	case len(missing) > 0:
		return fmt.Sprintf("events without an effect, by partition: %v", missing)
	case len(second) < wantSecond:
		return fmt.Sprintf("%d of %d effects of the second group", len(second), wantSecond)
	}
	return ""
}

func (r *reader) counts() (inputs, outputs int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen.Inputs), len(r.seen.Effects)
}

// close ends the reading and returns what was seen.
func (r *reader) close() (seen, []string) {
	r.cancel()
	<-r.done
	r.client.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen, r.bad
}
