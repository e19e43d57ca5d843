package tester

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

// offsets prints what a partition holds.
func offsets(tt *Tester, topic string) string {
	var b []string
	for _, r := range tt.Raw(topic, 0) {
		b = append(b, fmt.Sprintf("%d:%s=%s", r.Offset, r.Key, r.Value))
	}
	return strings.Join(b, " ")
}

func put(tt *Tester, topic string, pairs ...string) {
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		r := kafka.Record{Key: []byte(k), Value: []byte(v), Timestamp: -1}
		if !ok {
			r.Value = nil
		}
		tt.SendRaw(topic, 0, r)
	}
}

func TestCompactKeepsTheLastOfEachKeyAtItsOffset(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1, "cleanup.policy", "compact", "delete.retention.ms", "1000")
	put(tt, "t", "a=1", "b=1", "a=2", "b", "c=1", "a=3", "end=1")
	tt.Compact("t")
	if got := offsets(tt, "t"); got != "3:b= 4:c=1 5:a=3 6:end=1" {
		t.Fatalf("first cleaning left %s", got)
	}
	tt.Advance(time.Second)
	tt.Compact("t")
	if got := offsets(tt, "t"); got != "4:c=1 5:a=3 6:end=1" {
		t.Fatalf("the tombstone's time is over, left %s", got)
	}
	_, l := tt.w.log(kafka.TopicPartition{Topic: "t"})
	if l.start != 0 || l.end != 7 {
		t.Fatalf("log [%d, %d): cleaning moves neither end", l.start, l.end)
	}
}

func TestCompactLeavesYoungRecordsAlone(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1, "cleanup.policy", "compact", "min.compaction.lag.ms", "60000")
	put(tt, "t", "a=1", "a=2", "b=1")
	tt.Advance(30 * time.Second)
	put(tt, "t", "a=3", "b=2")
	tt.Compact("t")
	if got := offsets(tt, "t"); got != "0:a=1 1:a=2 2:b=1 3:a=3 4:b=2" {
		t.Fatalf("left %s", got)
	}
	tt.Advance(31 * time.Second)
	tt.Compact("t")
	if got := offsets(tt, "t"); got != "1:a=2 2:b=1 3:a=3 4:b=2" {
		t.Fatalf("left %s", got)
	}
}

// Bytes that were handed to Produce may change after Done.
func TestLogCopiesWhatIsWritten(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1)
	k, v, h := []byte("key"), []byte("value"), []byte("header")
	tt.SendRaw("t", 0, kafka.Record{Key: k, Value: v, Headers: []kafka.Header{{Key: "h", Value: h}}})
	copy(k, "xxx")
	copy(v, "xxxxx")
	copy(h, "xxxxxx")
	r := tt.Raw("t", 0)[0]
	if string(r.Key) != "key" || string(r.Value) != "value" || string(r.Headers[0].Value) != "header" {
		t.Fatalf("record %s=%s %s", r.Key, r.Value, r.Headers[0].Value)
	}
}

func TestLogAppendTimeIsTheClocks(t *testing.T) {
	tt := New(t)
	tt.CreateTopic("t", 1, "message.timestamp.type", "LogAppendTime")
	tt.SendRaw("t", 0, kafka.Record{Timestamp: 5})
	if r := tt.Raw("t", 0)[0]; r.Timestamp != tt.Now().UnixMilli() {
		t.Fatalf("timestamp %d", r.Timestamp)
	}
}

// A topic that is created again is another one for a table handle too.
func TestTableOfARecreatedTopicStartsEmpty(t *testing.T) {
	tt := New(t)
	rows := reka.NewTable("rows", number{})
	table, in := Table(tt, rows), Input(tt, rows)
	in.Send("a", 1)
	if len(table.Keys()) != 1 {
		t.Fatal("no row")
	}
	tt.DeleteTopic("rows")
	if n := len(table.Keys()); n != 0 {
		t.Fatalf("%d rows of a deleted topic", n)
	}
	Input(tt, rows).Send("b", 2)
	if got := fmt.Sprint(table.Keys()); got != "[b]" {
		t.Fatalf("keys %s", got)
	}
}
