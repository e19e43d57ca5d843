package tester

import (
	"bytes"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
)

// The functions of this file look at goroutines from outside. They answer
// what counting cannot: whether a goroutine that counts nothing (the test's
// own, or one that runs a Runner) waits for somebody else, and which
// goroutines of a process are left after its end.

// goroutine returns the number of the calling goroutine.
func goroutine() int64 {
	var buf [40]byte
	n := runtime.Stack(buf[:], false)
	id, _ := goroutineHeader(buf[:n])
	return id
}

// parked reports whether all of the given goroutines wait or have ended.
func parked(ids ...int64) bool {
	for _, state := range states(ids) {
		if !waiting(state) {
			return false
		}
	}
	return true
}

// states returns the states of those of ids that exist.
func states(ids []int64) map[int64]string {
	found := map[int64]string{}
	for block := range bytes.SplitSeq(dump(), []byte("\n\n")) {
		id, state := goroutineHeader(block)
		for _, want := range ids {
			if id == want {
				found[id] = state
			}
		}
	}
	return found
}

// dump returns the stacks of all goroutines.
func dump() []byte {
	for n := 1 << 16; ; n *= 2 {
		buf := make([]byte, n)
		if got := runtime.Stack(buf, true); got < n {
			return buf[:got]
		}
	}
}

// goroutineHeader parses "goroutine 12 [select, 3 minutes]:".
func goroutineHeader(block []byte) (id int64, state string) {
	rest, ok := strings.CutPrefix(string(block[:min(len(block), 120)]), "goroutine ")
	if !ok {
		return 0, ""
	}
	number, rest, _ := strings.Cut(rest, " ")
	id, _ = strconv.ParseInt(number, 10, 64)
	_, rest, _ = strings.Cut(rest, "[")
	state, _, _ = strings.Cut(rest, "]")
	return id, state
}

// waiting reports whether a goroutine in that state goes on only when
// somebody else acts. Locks are not waited for: they are held for a moment.
func waiting(state string) bool {
	for _, s := range []string{"chan receive", "chan send", "select", "IO wait", "sleep",
		"sync.Cond.Wait", "sync.WaitGroup.Wait", "semacquire", "synctest."} {
		if strings.HasPrefix(state, s) {
			return true
		}
	}
	return false
}

// processLabel marks the goroutines of one incarnation. Goroutines inherit
// it from those who start them.
const processLabel = "reka-tester-process"

// leftovers returns the stacks of goroutines of Reka that carry the label's
// value, "" if there are none.
func leftovers(value string) string {
	var buf, out bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&buf, 1); err != nil {
		return ""
	}
	mark := strconv.Quote(processLabel) + ":" + strconv.Quote(value)
	for block := range strings.SplitSeq(buf.String(), "\n\n") {
		if strings.Contains(block, mark) && strings.Contains(block, "github.com/rekastream/reka/") {
			out.WriteString(block)
			out.WriteString("\n\n")
		}
	}
	return out.String()
}
