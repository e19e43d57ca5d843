package task

import (
	"slices"

	"github.com/rekastream/reka/kafka"
)

// changelogRows are one store's rows of an epoch on their way to its
// changelog.
type changelogRows struct {
	epoch   *epoch
	store   int
	to      kafka.TopicPartition
	records []kafka.Record
}

// changelog returns the rows that an epoch writes, by store.
func (e *epoch) changelog() []changelogRows {
	var out []changelogRows
	for _, l := range e.layers {
		st := e.task.stores[l.store]
		if st.changelog.Topic == "" {
			continue
		}
		rows := changelogRows{epoch: e, store: l.store, to: st.changelog, records: make([]kafka.Record, 0, l.layer.Len())}
		for row := range l.layer.All() {
			rows.records = append(rows.records, kafka.Record{Key: row.Key, Value: row.Value, Timestamp: row.Time})
		}
		out = append(out, rows)
	}
	return slices.Clip(out)
}

// report is told of an acked run, under the write's lock: it moves the
// store's changelog position.
func (c *changelogRows) report(run kafka.Run) {
	if run.Base >= 0 {
		c.epoch.ends[c.store] = max(c.epoch.ends[c.store], run.Base+int64(run.To-run.From))
	}
}

// reportGap is told of an acked run before report: it notes records that
// somebody else wrote before it.
func (c *changelogRows) reportGap(run kafka.Run) {
	if was := c.epoch.ends[c.store]; was >= 0 && run.Base > was {
		c.epoch.strangers = append(c.epoch.strangers, gap{store: c.store, from: was, to: run.Base})
	}
}

// refused is the error of a run that was not written.
func (c *changelogRows) refused(run kafka.Run) error {
	return &kafka.Error{TopicPartition: c.to, Offset: -1, Key: c.records[run.From].Key, Err: run.Err}
}

// gap is a range of a changelog that was written by somebody else.
type gap struct {
	store    int
	from, to int64
}
