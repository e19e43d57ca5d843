package assign

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rekastream/reka/kafka"
)

// Refusal says why a member cannot get a subgraph that it declares. Err is
// one of the types of this file.
type Refusal struct {
	Subgraph string
	Err      error
}

// MissingTopicsError says that topics of a subgraph do not exist. It is a
// kafka.ErrUnknownTopic.
type MissingTopicsError struct {
	Subgraph string
	Topics   []string
}

// Error names the subgraph and the topics.
func (e *MissingTopicsError) Error() string {
	return fmt.Sprintf("subgraph %s: missing topic %s", e.Subgraph, strings.Join(e.Topics, ", "))
}

// Is makes the error a kafka.ErrUnknownTopic.
func (e *MissingTopicsError) Is(target error) bool { return target == kafka.ErrUnknownTopic }

// MismatchError says that the topics of a subgraph are not co-partitioned.
type MismatchError struct {
	Subgraph string
	Topics   []string // sorted
	Counts   []int32  // partition counts of Topics
}

// Error names the subgraph and each topic with its partition count.
func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "subgraph %s: topics are not co-partitioned:", e.Subgraph)
	for i, t := range e.Topics {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s has %d partitions", t, e.Counts[i])
	}
	return b.String()
}

// NarrowError says that other members declare the subgraph with more topics
// or more state, as in a rolling upgrade: they run it.
type NarrowError struct {
	Subgraph string
	Topics   []string // that the others have and the member has not
	Keeps    []string // likewise
}

// Error names the subgraph and what the member lacks.
func (e *NarrowError) Error() string {
	return fmt.Sprintf("subgraph %s: other members also %s, and run it", e.Subgraph, does(e.Topics, e.Keeps))
}

// ConflictError says that the member's declaration and that of the members
// who run the subgraph cannot both hold: two different programs share one
// group name, or a topic moved to another subgraph.
type ConflictError struct {
	Subgraph string
	Topics   []string // as the member declares it, sorted
	Keeps    []string

	Other       string // subgraph that runs instead; the same name or another
	OtherTopics []string
	OtherKeeps  []string
}

// Error says what the member would do, and what the others do.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("subgraph %s would %s, but other members of the group run subgraph %s: %s",
		e.Subgraph, does(e.Topics, e.Keeps), e.Other, does(e.OtherTopics, e.OtherKeeps))
}

// does says in words what a subgraph declares.
func does(topics, keeps []string) string {
	var parts []string
	if len(topics) > 0 {
		parts = append(parts, "read "+strings.Join(topics, ", "))
	}
	if len(keeps) > 0 {
		parts = append(parts, "keep "+strings.Join(keeps, ", "))
	}
	if len(parts) == 0 {
		return "declare nothing"
	}
	return strings.Join(parts, " and ")
}

// OtherError is a reason of a kind that this version does not know.
type OtherError struct {
	Subgraph, Reason string
}

// Error names the subgraph and gives the reason in the leader's words.
func (e *OtherError) Error() string { return "subgraph " + e.Subgraph + ": " + e.Reason }

// Errors of decoding.
var (
	// ErrMalformed: the bytes are not what they should be.
	ErrMalformed = errors.New("assign: malformed user data")
)

// VersionError says that bytes are written by a version that this one cannot
// read.
type VersionError struct {
	Version, Readable uint8 // version written, lowest version that can read it
}

// Error names the versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("assign: user data of version %d needs version %d to read, this is %d", e.Version, e.Readable, wireVersion)
}

func joinByName(errs map[string]error) error {
	all := make([]error, 0, len(errs))
	for _, name := range slices.Sorted(maps.Keys(errs)) {
		all = append(all, errs[name])
	}
	return errors.Join(all...)
}
