package graph

// Operation is a step that package stream has made a part of. The engine does
// not look at it: it is for descriptions.
type Operation struct {
	ID      string // unique in its group
	Kind    string
	Details []string // of a kind with parameters: windows, for one
	Parents []string // IDs of those before it
	Reads   []string // topics whose records it begins with
	Lookups []string // topics
	Writes  []string // topics
	Stores  []string // names
}

// Timer is something that runs by time, for descriptions.
type Timer struct {
	Name     string
	Clock    string
	Interval int64 // milliseconds; 0: it is set by callbacks
}
