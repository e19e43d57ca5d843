package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/rekastream/reka/kafka"
)

// A coordinator that has just taken a group over can answer from before its
// log's last records, until its followers have caught up. What rests on
// committed offsets that were read is therefore looked at once more after the
// offsets of the transaction were accepted: that answer comes only when the
// log has them, and with them everything before. Pending offsets do not show
// in what is read then.

// ErrStaleClaim says that the offsets that a claim rests on were not the
// newest ones: it was not committed, and they must be read again.
var ErrStaleClaim = errors.New("the committed offsets that the claim rests on are not the newest")

// verify compares what is committed with what claims and judged epochs of the
// batch rest on. It returns an error if one of them must not be committed;
// what becomes of it is noted.
func (t *transaction) verify(ctx context.Context) error {
	var parts []kafka.TopicPartition
	for _, e := range t.batch {
		switch {
		case e.claim != nil:
			for i := range e.claim.seen {
				parts = append(parts, e.claim.seen[i].TopicPartition)
			}
		case e.judged:
			parts = append(parts, e.marked().TopicPartition)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	offsets, err := t.by.Member.Committed(ctx, parts, false)
	if err != nil {
		return fmt.Errorf("read committed offsets again: %w", err)
	}
	found := make(map[kafka.TopicPartition]*kafka.CommittedOffset, len(offsets))
	for i := range offsets {
		if offsets[i].Err != nil {
			return fmt.Errorf("read committed offsets again: %w", offsets[i].Err)
		}
		found[offsets[i].TopicPartition] = &offsets[i]
	}
	for _, e := range t.batch {
		var said error
		switch {
		case e.claim != nil && !e.claim.rests(found):
			said = ErrStaleClaim
		case e.judged:
			mark, _ := DecodeMark(found[e.marked().TopicPartition].Metadata)
			said = t.lane.verdict(e, mark)
		}
		if said != nil {
			err = said
			t.mu.Lock()
			t.rows[e] = said
			t.mu.Unlock()
		}
	}
	return err
}

// rests reports whether the claim was made on what is committed.
func (c *Claim) rests(found map[kafka.TopicPartition]*kafka.CommittedOffset) bool {
	for i := range c.seen {
		if now := found[c.seen[i].TopicPartition]; now.Offset != c.seen[i].Offset || now.Metadata != c.seen[i].Metadata {
			return false
		}
	}
	return true
}

// errCommitted says that an epoch is committed: by a transaction before.
var errCommitted = errors.New("committed by a transaction before")

// verdict says what a mark means for an epoch: nil that it is not committed.
func (l *Lane) verdict(e *epoch, mark Mark) error {
	switch {
	case mark.Writer == l.env.ProcessID && mark.Epoch == e.number:
		return errCommitted
	case mark.Writer == l.env.ProcessID && mark.Epoch == e.number-1:
		return nil
	}
	return errTenure
}
