// Package window says to which windows a moment belongs, when a window is
// closed, when its rows expire, and how its keys are written. All of it is
// functions of time: nothing here reads a clock.
//
// # Kinds
//
//	tumbling  [start, start+size), one behind the other, aligned to the epoch
//	hopping   the same, one every advance, so that they overlap
//	sliding   [start..start+difference], both ends inside, where records are:
//	          a record at t has the windows [t-difference..t], or [0..difference]
//	          if it is earlier than difference, and [t+1..t+1+difference]
//	session   [first..last], the times of its records; a record within gap of
//	          a session is part of it
//
// No window starts below 0, and a time below 0 is in none.
//
// # Closed
//
// A window takes records until it is closed: when stream time has reached its
// exclusive end plus grace. The exclusive end is the first moment that no
// record of the window can have: start+size for tumbling and hopping, start +
// difference + 1 for sliding, last + gap + 1 for sessions. There is one test
// of it, Closed, and whatever accepts, releases, expires or calls late uses
// it. So a final result is final.
//
// Grace has no default: how late records may be is known to who declares the
// windows only. NoGrace says that none may.
//
// # Expired
//
// A row of a window stays visible for the retention. Retention is what must be
// at hand for records in grace, and no less: size + grace for tumbling and
// hopping, twice the difference + grace for sliding, and gap + grace from its
// last record for a session. WithRetention makes it longer. What has expired
// is closed.
//
// # Units
//
// Durations are time.Duration where windows are declared and whole
// milliseconds from there on, as Kafka's timestamps. Sums that pass the end of
// time stay there, at math.MaxInt64.
//
// Constructors return no error, so that declarations can stand in package
// variables. Validate tells what is wrong, and is asked wherever windows are
// used.
package window
