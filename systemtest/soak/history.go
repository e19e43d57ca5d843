package soak

import "github.com/rekastream/reka/processor"

// history is all that a run left behind, to be judged.
type history struct {
	Guarantee processor.Guarantee
	Seen      seen

	Emitted    int64    // ids 1 to Emitted were emitted
	EmitErrors []string // of those that were not acknowledged

	LastRates map[string]int64 // versions that were there before each key's last event

	Tables []tableHistory
	Views  map[string]map[string]row // tally's, by process

	Back     []string // committed offsets that went back
	Troubles []string // what processes did that they must not
	Bad      []string // records that are not what the service writes
	Stuck    []string // what stood still; then nothing is judged as missing
}

// tableHistory is a group's table in the end.
type tableHistory struct {
	Group  string
	Topic  string
	Claims []claim
}

// claim is a partition that a process has, with the rows as a visitor saw
// them and as its closed store has them.
type claim struct {
	Process   string
	Partition int32
	Visited   map[string]row
	Stored    map[string]row
}

// Properties that are judged, as violations name them.
const (
	kindLost    = "lost"    // an effect is missing
	kindDoubled = "doubled" // an effect is there twice
	kindOrder   = "order"   // effects of a key are out of order
	kindCount   = "count"   // an effect tells another count than its row must have had
	kindJoin    = "join"    // a joined row was older than it must have been
	kindTable   = "table"   // copies of a table differ
	kindOwner   = "owner"   // a partition has no owner, or two
	kindOffset  = "offset"  // a committed offset went back
	kindProcess = "process" // a process did what it must not
	kindRecord  = "record"  // a record that nobody should have written
	kindStuck   = "stuck"   // something stood still
)

// violation is one finding.
type violation struct {
	kind, text string
}
