// Package work knows when an engine has nothing left to do.
//
// Every goroutine of the engine is in one of two states: running, or parked
// with nothing to do until somebody else acts. A Driver that wants to know
// when everything stands still (the tester does; real Kafka does not care)
// counts the running ones. The rules that make the count exact:
//
//   - Go adds one before the goroutine starts and takes it off when it ends.
//   - A goroutine parks in Mailbox.Take only, or inside a call into the
//     Driver (Clock.Sleep, say), which then does the counting itself.
//   - Put counts the receiver as running before the sender can park, so the
//     count never touches zero while something is on its way.
//   - One engine goroutine waits for another one's end by a message that the
//     ending goroutine puts into a mailbox while it still counts as running.
//
// Package work stands below every other package and imports none of them.
package work

// Counter counts running goroutines. A nil Counter counts nothing.
//
// Add may be called from any goroutine and must not block.
type Counter interface {
	Add(delta int)
}

// Go runs f in a goroutine of its own that counts as running in c until f
// returns. The caller says, as with any go statement, when f ends and who
// waits for it.
func Go(c Counter, f func()) {
	if c == nil {
		go f()
		return
	}
	c.Add(1)
	go func() {
		defer c.Add(-1)
		f()
	}()
}
