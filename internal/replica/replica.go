package replica

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
)

// Target says when a restore is complete: when the position is at least At.
// Of a topic that others write, At is the last stable offset at the start; of
// an own changelog the high watermark after its last writer was fenced.
type Target struct {
	At int64

	// Exact stops the restore at At: records from there on are not applied
	// (a joined table is restored to the committed position of its input).
	// A checkpoint beyond At is then unsound.
	Exact bool
}

// Config describes a Replica.
type Config struct {
	kafka.TopicPartition

	// Table is where the rows go. The replica commits to it.
	Table *Table

	// Owned says that the log is the changelog of the one who asks, and that
	// input was committed on the strength of it: another topic behind its
	// name is then an error, and nothing is deleted.
	Owned bool

	// Accept, if set, sees every record with a key and a value, in order, on
	// the owner's goroutine, in restores as well as later. If it reports
	// false the record counts as skipped, and as a delete: its row is absent,
	// now and after any restart. It must not keep the record.
	Accept func(*kafka.Record) bool

	Clock kafka.Clock
	Log   *zap.Logger
}

// State is where a Replica stands.
type State int8

// The states of a Replica, in order.
const (
	Created State = iota
	Restoring
	Live
)

// Replica follows the log of one partition into a Table. It belongs to one
// goroutine.
type Replica struct {
	// Fixed after New.
	cfg Config
	t   *Table

	// Owned by the owner goroutine.
	state  State
	bounds Bounds
	target Target
	open   bool      // the target is the last stable offset of the next batch
	fresh  bool      // the restore began with an empty table
	atEnd  time.Time // the position was the log's end then, or the table empty; zero: unknown
	epoch  int32
	owner  []byte    // for checkpoints
	began  time.Time // of the last restore
	rows0  int64     // p.Rows then
	bytes0 int64     // p.Bytes then
	p      Progress
}

// New returns a replica in state Created.
func New(cfg Config) *Replica {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Clock == nil {
		cfg.Clock = kafka.SystemClock()
	}
	return &Replica{cfg: cfg, t: cfg.Table, epoch: -1}
}

// Start decides where to begin, by the checkpoint and the bounds, and goes to
// Restoring, or to Live if the position has reached the target already. If
// the checkpoint is unsound it clears the table, which may take long, and
// warns once. It returns a *kafka.Error around kafka.ErrTopicChanged for an
// owned log behind whose name another topic stands, and errors of the store.
// It may be called again, after trouble, to go on.
func (r *Replica) Start(b Bounds, t Target) error {
	r.bounds, r.target, r.open = b, t, false
	r.began = r.cfg.Clock.Now()
	cp, ok := r.t.Committed()
	if !ok {
		return r.startEmpty()
	}
	if changed(cp.TopicID, b.TopicID) {
		if r.cfg.Owned {
			return &kafka.Error{TopicPartition: r.cfg.TopicPartition, Offset: cp.Position, Err: fmt.Errorf(
				"%w: the local copy is of the old one up to this offset, the new one ends at %d", kafka.ErrTopicChanged, b.HighWatermark)}
		}
		return r.rebuild("the topic was deleted and created again", b.LogStart)
	}
	r.atEnd, r.fresh = cp.AtEnd, false
	reason := b.unsound(cp.Position, t)
	switch {
	case reason != "":
	case cp.Position == b.HighWatermark:
		r.atEnd = r.began // nothing was written since, so nothing was missed
	case r.tooOld():
		reason = r.ageReason()
	}
	if reason != "" {
		return r.rebuild(reason, b.LogStart)
	}
	r.epoch = cp.LeaderEpoch
	r.begin(cp.Position)
	return nil
}

// startEmpty begins at the log's start. Rows that a crash left without a
// checkpoint are cleared away: it is not known what they miss.
func (r *Replica) startEmpty() error {
	if r.t.litter {
		if err := r.t.Clear(); err != nil {
			return err
		}
	}
	r.fresh, r.atEnd, r.epoch = true, r.began, -1
	r.begin(r.bounds.LogStart)
	r.t.Advance(r.Checkpoint())
	return nil
}

// rebuild clears the table and begins at the log's start.
func (r *Replica) rebuild(reason string, logStart int64) error {
	r.cfg.Log.Warn("local copy cannot be used and is built anew: "+reason,
		zap.String("topic", r.cfg.Topic), zap.Int32("partition", r.cfg.Partition), zap.Int64("log start", logStart))
	if err := r.t.Clear(); err != nil {
		return err
	}
	r.p.Rebuilds++
	r.began = r.cfg.Clock.Now()
	r.bounds.LogStart = logStart
	return r.startEmpty()
}

// begin sets the position and the state that follows from it.
func (r *Replica) begin(pos int64) {
	r.p.Begin, r.p.Position, r.p.Target, r.p.End = pos, pos, r.target.At, r.bounds.LastStable
	r.p.Restored, r.p.RestoredBytes, r.p.Elapsed = 0, 0, 0
	r.rows0, r.bytes0 = r.p.Rows, r.p.Bytes
	r.state = Restoring
	r.checkTarget()
}

func (r *Replica) checkTarget() {
	if r.state == Restoring && !r.open && r.p.Position >= r.target.At {
		r.state, r.fresh = Live, false
		r.p.Elapsed = r.cfg.Clock.Now().Sub(r.began)
		r.p.Restored, r.p.RestoredBytes = r.p.Rows-r.rows0, r.p.Bytes-r.bytes0
	}
}

func changed(a, b kafka.TopicID) bool { return !a.IsZero() && !b.IsZero() && a != b }

// tooOld reports whether tombstones may be gone from the log that the table
// has not seen. A table that began empty cannot have missed any: a row that
// was read lets its later tombstone live for the full retention. (A rebuild
// that takes longer than that can be no better the next time.)
func (r *Replica) tooOld() bool {
	keep := r.bounds.TombstoneRetention
	if keep <= 0 || r.fresh || r.atEnd.IsZero() {
		return false
	}
	return r.cfg.Clock.Now().Sub(r.atEnd) > keep-tombstoneMargin(keep)
}

func (r *Replica) ageReason() string {
	return fmt.Sprintf("it was last complete %s ago and the topic keeps its deletes for %s only",
		r.cfg.Clock.Now().Sub(r.atEnd).Round(time.Second), r.bounds.TombstoneRetention)
}

// Follow returns the terms on which to follow the log from Position: all but
// Deliver.
func (r *Replica) Follow() kafka.Follow {
	return kafka.Follow{TopicPartition: r.cfg.TopicPartition, TopicID: r.bounds.TopicID, Position: r.p.Position}
}

// Position is the next offset to read.
func (r *Replica) Position() int64 { return r.p.Position }

// State returns where the replica stands.
func (r *Replica) State() State { return r.state }

// Table returns the table. The owner of a restored replica that is not to
// follow any more uses it alone from then on.
func (r *Replica) Table() *Table { return r.t }

// FlushDue is Table.FlushDue.
func (r *Replica) FlushDue(now time.Time) bool { return r.t.FlushDue(now) }

// Apply takes one batch: rows and position. It does not release it. It
// reports again = true when the position did not become that of the batch and
// the log must be followed anew from Position: the position was out of range,
// or older than the topic keeps its tombstones, and the table was cleared (one
// warning, back to Restoring). Other errors of the batch are returned as they
// are. After an exact target was reached it does nothing.
//
// The owner calls it only while Table.Full reports false, and runs a flush
// whenever FlushDue reports true.
func (r *Replica) Apply(b *kafka.Batch) (again bool, err error) {
	again, err = r.admit(b)
	if again || err != nil || r.done() {
		return again, err
	}
	r.applyRecords(b.Records)
	r.settle(b)
	return false, nil
}

// done reports that the replica has stopped at an exact target.
func (r *Replica) done() bool { return r.target.Exact && r.state == Live }

// admit decides whether the records of b may be applied.
func (r *Replica) admit(b *kafka.Batch) (again bool, err error) {
	if r.done() {
		return false, nil
	}
	if b.Err != nil {
		var out *kafka.OffsetOutOfRangeError
		if !errors.As(b.Err, &out) {
			return false, b.Err
		}
		return true, r.restart("what was to be read next is not in the log any more: "+out.Error(), out.LogStart)
	}
	if b.Position > r.p.Position && r.tooOld() {
		return true, r.restart(r.ageReason(), b.LogStart)
	}
	return false, nil
}

// restart is rebuild in the middle of following.
func (r *Replica) restart(reason string, logStart int64) error {
	r.open = !r.target.Exact && !r.cfg.Owned // what was stable at the start may be gone
	return r.rebuild(reason, logStart)
}

func (r *Replica) applyRecords(recs []kafka.Record) {
	for i := range recs {
		rec := &recs[i]
		if rec.Offset < r.p.Position {
			continue
		}
		if r.target.Exact && rec.Offset >= r.target.At {
			return
		}
		r.p.Rows++
		r.p.Bytes += int64(len(rec.Key) + len(rec.Value))
		switch {
		case rec.Key == nil:
			r.p.NullKeys++
		case rec.Value == nil:
			r.p.Tombstones++
			r.t.put(rec.Key, nil, rec.Timestamp)
		case r.cfg.Accept != nil && !r.cfg.Accept(rec):
			r.p.Skipped++
			r.t.put(rec.Key, nil, rec.Timestamp)
		default:
			r.t.put(rec.Key, rec.Value, rec.Timestamp)
		}
	}
}

// settle moves the position behind b, whose records are applied.
func (r *Replica) settle(b *kafka.Batch) {
	if r.open {
		r.open, r.target.At, r.p.Target = false, b.LastStable, b.LastStable
	}
	pos := b.Position
	if r.target.Exact {
		pos = min(pos, r.target.At)
	}
	r.p.Position = max(r.p.Position, pos)
	r.p.End = b.LastStable
	if b.LeaderEpoch >= 0 {
		r.epoch = b.LeaderEpoch
	}
	if b.AtEnd(true) && pos == b.Position {
		r.atEnd = r.cfg.Clock.Now()
	}
	r.checkTarget()
	r.t.settle(r.Checkpoint())
}

// NoteEnd tells the last stable offset as of a moment at which the brokers
// were asked. If it is the replica's position, the table was complete then:
// on a topic where nothing happens nothing else says so, and after the time
// for which the topic keeps its tombstones the table would be built anew.
func (r *Replica) NoteEnd(lastStable int64, asOf time.Time) {
	r.p.End = max(r.p.End, lastStable)
	if r.state == Created || r.p.Position < lastStable || !asOf.After(r.atEnd) {
		return
	}
	r.atEnd = asOf
	r.t.Advance(r.Checkpoint())
}

// Checkpoint is the replica's position as a checkpoint.
func (r *Replica) Checkpoint() storage.Checkpoint {
	return storage.Checkpoint{
		Position:    r.p.Position,
		LeaderEpoch: r.epoch,
		TopicID:     r.bounds.TopicID,
		AtEnd:       r.atEnd,
		Owner:       r.owner,
	}
}

// Progress is how far a replica is.
type Progress struct {
	State State

	// Rows and Bytes were read since the replica was made; Restored of the
	// rows by the last restore.
	Rows, Bytes, Restored int64

	// RestoredBytes is keys and values of Restored.
	RestoredBytes int64

	// Counted since the replica was made: deletes, records that Accept
	// refused, and records without a key, which are no rows.
	Tombstones, Skipped, NullKeys int64

	// Rebuilds is how often the table was cleared and built anew.
	Rebuilds int64

	// Begin is the position at which the last restore began, Position the
	// next offset to read, Target where the restore ends, End the last stable
	// offset last seen.
	Begin, Position, Target, End int64

	// Elapsed is how long the restore has taken so far, or took.
	Elapsed time.Duration
}

// Lag is how many offsets are still to read, as far as known.
func (p Progress) Lag() int64 { return max(0, p.End-p.Position) }

// Remaining is how many offsets are left to restore.
func (p Progress) Remaining() int64 {
	if p.State != Restoring {
		return 0
	}
	return max(0, p.Target-p.Position)
}

// Rate is rows a second of the restore; 0 if nothing can be said.
func (p Progress) Rate() float64 {
	if p.Elapsed <= 0 {
		return 0
	}
	return float64(p.Restored) / p.Elapsed.Seconds()
}

// Estimate is the time that the restore will still take if it goes on as
// fast; 0 if nothing can be said.
func (p Progress) Estimate() time.Duration {
	done := p.Position - p.Begin
	if done <= 0 {
		return 0
	}
	return time.Duration(float64(p.Elapsed) * float64(p.Remaining()) / float64(done))
}

// Progress returns how far the replica is.
func (r *Replica) Progress() Progress {
	p := r.p
	p.State = r.state
	if r.state == Restoring {
		p.Elapsed = r.cfg.Clock.Now().Sub(r.began)
		p.Restored, p.RestoredBytes = p.Rows-r.rows0, p.Bytes-r.bytes0
	}
	return p
}
