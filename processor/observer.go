package processor

// Observer is told what happens to a processor. Each function may be nil.
// They are called one after the other, in order, on the processor's own
// goroutine: they must return soon, and must not wait for the processor. In a
// graph of several subgraphs they are told of the partitions of each, one
// subgraph after the other: the same number may come several times.
type Observer struct {
	// State is called with each new state.
	State func(Status)

	// Assigned is called with partitions that were given to this instance,
	// before they are restored.
	Assigned func(partitions []int32)

	// Running is called with a partition when it is restored and reads its
	// inputs.
	Running func(partition int32)

	// Revoked is called with partitions that were taken away, when nothing
	// of them runs any more.
	Revoked func(partitions []int32)
}

// Status is what a processor is doing.
type Status int8

// The states of a processor.
const (
	Idle       Status = iota // Run was not called
	Connecting               // asks for topics, loads lookups, joins the group
	Restoring                // some of its partitions are being restored
	Serving                  // all of its partitions read their inputs
	Stopping                 // drains
	Stopped                  // Run has returned
)

// String returns the state in words.
func (s Status) String() string {
	return [...]string{"idle", "connecting", "restoring", "serving", "stopping", "stopped"}[s]
}
