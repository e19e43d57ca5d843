package soak

import "github.com/rekastream/reka/processor"

// history is all that a run left behind, to be judged.
type history struct {
	Guarantee processor.Guarantee `json:"guarantee"`
	Seen      seen                `json:"seen"`

	Emitted    int64    `json:"emitted"`     // ids 1 to Emitted were emitted
	EmitErrors []string `json:"emit_errors"` // of those that were not acknowledged

	LastRates map[string]int64 `json:"last_rates"` // versions that were there before each key's last event

	Tables []tableHistory            `json:"tables"`
	Views  map[string]map[string]row `json:"views"` // tally's, by process

	Back     []string `json:"back"`     // committed offsets that went back
	Troubles []string `json:"troubles"` // what processes did that they must not
	Bad      []string `json:"bad"`      // records that are not what the service writes
	Stuck    []string `json:"stuck"`    // what stood still; then nothing is judged as missing
}

// tableHistory is a group's table in the end.
type tableHistory struct {
	Group  string  `json:"group"`
	Topic  string  `json:"topic"`
	Claims []claim `json:"claims"`
}

// claim is a partition that a process has, with the rows as a visitor saw
// them and as its closed store has them.
type claim struct {
	Process   string         `json:"process"`
	Partition int32          `json:"partition"`
	Visited   map[string]row `json:"visited"`
	Stored    map[string]row `json:"stored"`
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
