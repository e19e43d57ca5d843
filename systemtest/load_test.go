package systemtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/kafka"
)

// load emits numbered events for a few hundred keys and knows how many each
// key had.
type load struct {
	e    *emitter.Emitter[[]byte]
	next int

	mu   sync.Mutex
	sent map[string]int64
}

const loadKeys = 200

func newLoad(t *testing.T, c *kafka.Client, topic string) *load {
	t.Helper()
	e, err := emitter.New(c, reka.NewStream(topic, codec.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close emitter: %v", err)
		}
	})
	return &load{e: e, sent: map[string]int64{}}
}

// emit emits n events and waits until all are written.
func (l *load) emit(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range n {
		key := fmt.Sprintf("key-%d", l.next%loadKeys)
		if _, err := l.e.Emit(ctx, key, fmt.Appendf(nil, "event %d", l.next)); err != nil {
			t.Fatal(err)
		}
		l.next++
		l.mu.Lock()
		l.sent[key]++
		l.mu.Unlock()
	}
	if err := l.e.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// counted waits until the table topic of a service has every event, and fails
// if it has more than there were.
func (l *load) counted(t *testing.T, c *kafka.Client, group string) {
	t.Helper()
	missing := ""
	until(t, func() bool {
		rows := fold(t, c, reka.TableTopic(group))
		missing = ""
		for key, want := range l.sent {
			v, err := tallyCodec{}.Decode([]byte(rows[key]))
			if err != nil {
				v = tally{}
			}
			if v.Count > want {
				t.Fatalf("%s was counted %d times, %d were sent", key, v.Count, want)
			}
			if v.Count < want {
				missing = fmt.Sprintf("%s: %d of %d", key, v.Count, want)
			}
		}
		return missing == ""
	}, func() string { return missing })
}
