package processor

import "github.com/rekastream/reka/internal/task"

// Deferred finishes a record after its callback has returned. See
// Context.Defer. It may be used from any goroutine, at any time. Only the
// first call of Finish or Fail counts, of all that Defer gave to one run of
// the callback; it does not wait for what it causes. After the partition was
// lost, the processor has stopped, or the callback has failed after all,
// nothing happens any more: the record comes again, to whoever is its owner.
type Deferred struct{ d *task.Deferred }

// Finish ends the record with fn. It is called once, soon, where callbacks are
// called: on the goroutine of the record's partition, between other records,
// with a Context that stands at the record as in its callback (key, time,
// headers, handles) and that is valid until fn returns. What fn does is the
// record's effect; if it returns an error, or panics, the error policy decides
// as it does for a callback. Middleware does not run around it. fn must not
// wait for the slow part: that is over. It may call Defer again, by the rules
// for callbacks, to wait for another one. A nil fn does nothing.
func (d *Deferred) Finish(fn func(*Context) error) {
	if fn == nil {
		d.d.Finish(nil)
		return
	}
	d.d.Finish(func(r *task.Record) error {
		ctx, _ := r.Attached.(*Context) // made when the callback ran
		return fn(ctx)
	})
}

// Fail ends the record as if its callback had returned err: the error policy
// decides, and AsSkip and the like steer it. A nil err fails it all the same.
func (d *Deferred) Fail(err error) { d.d.Fail(err) }

// Defer says that the record is not finished when its callback returns nil:
// somebody will call Finish, or Fail, when something slow is over that the
// callback has started elsewhere, a request to another service say. What that
// needs of the record the callback takes out of the Context first; the Context
// itself is good for nothing but as a context.Context then.
//
// Meanwhile the partition goes on with records of other keys; those of the
// same key, of whatever input, and the rows of joined tables at that key, wait
// until it is finished, and then have their turn in the order in which they
// came. Records without a key wait for nobody. Visitors do not wait either. So
// what is done at one key stays in order, while records of different keys
// take effect, and their outputs leave, in the order in which they are
// finished. A callback that has deferred leaves every effect to fn: if it
// changes or emits anything itself the record fails. It may read. If it
// returns an error that counts, and Finish comes too late.
//
// A commit covers finished records only. When one is due (WithCommitInterval,
// Tuning.EpochBytes) the partition starts no further record until none is
// unfinished, and commits then: records that take long make commits, and
// everything behind them, late. The same goes for Tuning.Unfinished. So
// whoever finishes records must not wait for further records to come. A record
// that is never finished stops its partition.
//
// A record that failed and is to be repeated (Retry) runs its callback again
// after its backoff, while other keys go on. One that fails for good takes
// the processor with it; then, and in a crash, everything since the last
// commit comes again, finished or not, under the terms of the guarantee. When
// the partition moves away or the processor stops, unfinished records are
// waited for as a running callback is (WithRebalanceTimeout, WithStopTimeout),
// unless one of them is in its backoff.
func (c *Context) Defer() *Deferred { return &Deferred{c.rec.Defer()} }
