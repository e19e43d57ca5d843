package tester

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/rekastream/reka/kafka"
)

// topic is a topic of the brokers. All of it is guarded by world.mu.
type topic struct {
	name     string
	id       kafka.TopicID
	replicas int16
	configs  map[string]string // effective
	logs     []*partitionLog

	// From configs, for the hot path.
	compacted     bool
	logAppendTime bool
	maxMessage    int
}

// partitionLog is the log of one partition.
type partitionLog struct {
	entries []entry // by offset, with gaps where records were compacted away
	start   int64   // log start
	end     int64   // high watermark
	epochs  []epochStart

	spans     []*span                    // of transactions without a marker here
	sequences map[*coordination]sequence // of transactional producers
}

// entry is one record of a log.
type entry struct {
	kafka.Record
	seq     int64 // order of all appended records of the world
	epoch   int32 // of the leader that took it in
	control bool
	span    *span // nil: not of a transaction
	horizon int64 // of a tombstone that was cleaned: when it may go, in ms; 0: not yet
}

// brokerConfigs are the settings of a topic that names none.
var brokerConfigs = map[string]string{
	"cleanup.policy":            "delete",
	"compression.type":          "producer",
	"delete.retention.ms":       "86400000",
	"max.compaction.lag.ms":     "9223372036854775807",
	"max.message.bytes":         "1048588",
	"message.timestamp.type":    "CreateTime",
	"min.cleanable.dirty.ratio": "0.5",
	"min.compaction.lag.ms":     "0",
	"min.insync.replicas":       "1",
	"retention.bytes":           "-1",
	"retention.ms":              "604800000",
	"segment.bytes":             "1073741824",
	"segment.ms":                "604800000",
}

// batchOverhead is what the broker counts for a batch besides its records.
const batchOverhead = 61

// setConfigs applies settings over the defaults.
func (t *topic) setConfigs(configs map[string]string) {
	t.configs = map[string]string{}
	for _, m := range []map[string]string{brokerConfigs, configs} {
		for k, v := range m {
			t.configs[k] = v
		}
	}
	t.compacted = strings.Contains(t.configs["cleanup.policy"], "compact")
	t.logAppendTime = t.configs["message.timestamp.type"] == "LogAppendTime"
	t.maxMessage = int(t.millis("max.message.bytes"))
}

// millis returns a numeric setting, 0 if it is none.
func (t *topic) millis(name string) int64 {
	n, err := strconv.ParseInt(t.configs[name], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// log returns one partition's log, nil if there is none.
func (w *world) log(tp kafka.TopicPartition) (*topic, *partitionLog) {
	t := w.topics[tp.Topic]
	if t == nil || tp.Partition < 0 || int(tp.Partition) >= len(t.logs) {
		return t, nil
	}
	return t, t.logs[tp.Partition]
}

// append writes records, copying their bytes, and returns the offset of the
// first. mu is held.
func (w *world) append(t *topic, l *partitionLog, rs []kafka.Record) int64 {
	return w.appendTo(nil, t, l, rs)
}

// appendTo is append within a span of a transaction, which may be nil. mu is
// held.
func (w *world) appendTo(s *span, t *topic, l *partitionLog, rs []kafka.Record) int64 {
	base, now := l.end, w.clock.now.UnixMilli()
	size := 0
	for i := range rs {
		size += len(rs[i].Key) + len(rs[i].Value)
	}
	slab := make([]byte, 0, size)
	keep := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		n := len(slab)
		slab = append(slab, b...)
		return slab[n:len(slab):len(slab)]
	}
	l.entries = slices.Grow(l.entries, len(rs))
	for i := range rs {
		r := kafka.Record{Key: keep(rs[i].Key), Value: keep(rs[i].Value), Offset: l.end, Timestamp: rs[i].Timestamp}
		if r.Timestamp < 0 || t.logAppendTime {
			r.Timestamp = now
		}
		for _, h := range rs[i].Headers {
			r.Headers = append(r.Headers, kafka.Header{Key: strings.Clone(h.Key), Value: slices.Clone(h.Value)})
		}
		w.sequence++
		l.entries = append(l.entries, entry{Record: r, seq: w.sequence, epoch: l.epoch(), span: s})
		l.end++
	}
	w.changed()
	return base
}

// appendControl writes a control record. mu is held.
func (w *world) appendControl(l *partitionLog) {
	w.sequence++
	l.entries = append(l.entries, entry{Record: kafka.Record{Offset: l.end}, seq: w.sequence, epoch: l.epoch(), control: true})
	l.end++
	w.changed()
}

// from returns the index of the first entry at or after an offset.
func (l *partitionLog) from(offset int64) int {
	if n := len(l.entries); n > 0 && offset > l.entries[n-1].Offset {
		return n
	}
	return sort.Search(len(l.entries), func(i int) bool { return l.entries[i].Offset >= offset })
}

// deleteBefore moves the log start up to an offset. mu is held.
func (l *partitionLog) deleteBefore(offset int64) {
	if offset <= l.start {
		return
	}
	l.entries = slices.Clone(l.entries[l.from(offset):])
	l.start = offset
	l.dropEpochs(offset)
}

// compact does what the brokers' log cleaner does: of each key the last
// record stays, at its offset; a tombstone goes when delete.retention.ms has
// passed since a first cleaning; aborted records go; what is younger than
// min.compaction.lag.ms, not stable yet, or the last record is not touched. The log start does not move. mu is
// held.
func (l *partitionLog) compact(t *topic, now int64) {
	lag, retention := t.millis("min.compaction.lag.ms"), t.millis("delete.retention.ms")
	dirty := min(max(len(l.entries)-1, 0), l.from(l.stable()))
	for i := range l.entries[:dirty] {
		if lag > 0 && l.entries[i].Timestamp > now-lag {
			dirty = i
			break
		}
	}
	last := map[string]int64{}
	for i := range l.entries[:dirty] {
		if e := &l.entries[i]; !e.control && !e.aborted() {
			last[string(e.Key)] = e.Offset
		}
	}
	kept := make([]entry, 0, len(l.entries))
	for i := range l.entries[:dirty] {
		e := l.entries[i]
		switch {
		case e.aborted():
			continue
		case !e.control && last[string(e.Key)] != e.Offset:
			continue
		case !e.control && e.Value == nil && e.horizon == 0:
			e.horizon = now + retention
		case !e.control && e.Value == nil && e.horizon <= now:
			continue
		}
		kept = append(kept, e)
	}
	l.entries = append(kept, l.entries[dirty:]...)
}

// offset answers a mark. mu is held.
func (l *partitionLog) offset(at kafka.Mark) int64 {
	switch at {
	case kafka.HighWatermark:
		return l.end
	case kafka.LastStable:
		return l.stable()
	case kafka.LogStart:
		return l.start
	}
	for i := range l.entries {
		if e := &l.entries[i]; !e.control && e.Timestamp >= int64(at) {
			return e.Offset
		}
	}
	return l.end
}
