package task

// Step is one step of what happens around each record when time may have
// moved: a clock is raised, or what waits for it is run, or both in this
// order. The steps of a Part are in topological order, so what an advance
// releases reaches the operators behind before their clocks show the advance.
type Step struct {
	// Raise is the clock to raise to the stream time less its hold; -1: none.
	Raise int
	// Run is what may be due then; nil: nothing.
	Run *Timed
}

// Timed is an operator that waits for time. Its entries are rows of one store
// whose keys begin with a timeline's byte and 8 bytes of time; see
// graph.Store.Timelines. Deleting the row takes the entry off.
type Timed struct {
	Name  string // of the operator, for errors
	Store int    // index of Graph.Stores
	// Lines are the timelines that it waits for, merged: entries are handed
	// over by time, then by order of Lines, then by the rest of their keys.
	Lines []Line
	// Clock says what time it goes by: an index of Part.Holds, or WallClock.
	Clock int
	// Run is given entries that are due, in order, at most Chunk. It must
	// delete each of them, or as many of the first as it can deal with, at
	// least one. What it does takes effect together, like a record's effects.
	// An error ends the processor.
	Run func(r *Record, due []Entry) error
	// Skip, if set, is run instead where Run has failed and the error policy
	// of the process phase does not say that the processor ends: it takes the
	// entries off.
	Skip func(r *Record, due []Entry) error
	// Chunk bounds the entries of one run. Default 64.
	Chunk int
	// Lazy says that nothing depends on when it runs, as with expiry: one
	// chunk a record is enough, the rest follows.
	Lazy bool
}

// Line is one timeline of a Timed.
type Line struct {
	Prefix byte
	Lag    int64 // an entry of time t is due when the clock shows t+Lag or more, in milliseconds
}

// Entry is a row that is due. Its bytes are valid until Run returns.
type Entry struct {
	Line    int // index of Timed.Lines
	Time    int64
	Key     []byte // the whole row key, prefix and time included
	Value   []byte
	RowTime int64 // of the row
}

// WallClock is the Timed.Clock of what waits for the wall clock.
const WallClock = -1
