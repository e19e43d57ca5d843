package tester

// The functions of this file stand for an intruder: somebody else who uses
// the transactional id of a process. That may be a former owner that comes
// back, or a fence order that is carried out late.

// Initialise makes one InitProducerID request for a transactional id, in
// nobody's name, as it arrives at the coordinator now. It aborts an open
// transaction, and says so with an error: only a request after that fences its
// writer for good. With stale it names an epoch that was given out before:
// then an open transaction is aborted all the same, and nothing else changes.
func (t *Tester) Initialise(id string, stale bool) error {
	t.enter()
	w := t.w
	w.mu.Lock()
	defer w.mu.Unlock()
	epoch, c := int32(-1), w.coordination(id)
	if stale {
		epoch = neverGiven
	}
	_, err := c.init(epoch, defaultTransaction)
	w.changed()
	return err
}

// neverGiven is an epoch that no coordinator takes for a present one.
const neverGiven = 1 << 30

// Open reports whether a transactional id has a transaction that is not
// decided. It does not settle.
func (t *Tester) Open(id string) bool {
	t.enter()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	c := t.w.txns[id]
	return c != nil && c.state == txnOngoing
}
