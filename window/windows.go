package window

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// NoGrace is the grace of windows that take no late record.
const NoGrace time.Duration = 0

// ErrInvalid is what Validate's errors are.
var ErrInvalid = errors.New("invalid windows")

// Kind is a kind of windows.
type Kind int8

// The kinds. The zero value is none: Windows come from constructors.
const (
	KindTumbling Kind = iota + 1
	KindHopping
	KindSliding
	KindSession
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case KindTumbling:
		return "tumbling"
	case KindHopping:
		return "hopping"
	case KindSliding:
		return "sliding"
	case KindSession:
		return "session"
	}
	return "none"
}

// Windows is a declaration of windows: a plain value, comparable, that may be
// used from any number of goroutines. Ask Validate before the rest; what it
// refuses contains no moment.
type Windows struct {
	kind Kind

	// Milliseconds. span is size, difference or gap; advance is 0 unless the
	// windows are aligned to the epoch.
	span, advance, grace int64

	retention time.Duration
	retains   bool // retention was set

	fault string // what a constructor found, or ""
}

// Tumbling are windows of a size, one behind the other.
func Tumbling(size, grace time.Duration) Windows {
	c := checks{}
	ms := c.above0("size", size)
	return c.of(Windows{kind: KindTumbling, span: ms, advance: ms, grace: c.notBelow0("grace", grace)})
}

// Hopping are windows of a size, one every advance.
func Hopping(size, advance, grace time.Duration) Windows {
	c := checks{}
	ws := Windows{kind: KindHopping, span: c.above0("size", size), advance: c.above0("advance", advance), grace: c.notBelow0("grace", grace)}
	if advance > size {
		c.addf("advance %s is above size %s", advance, size)
	}
	return c.of(ws)
}

// Sliding are windows around records whose times differ by at most
// difference.
func Sliding(difference, grace time.Duration) Windows {
	c := checks{}
	return c.of(Windows{kind: KindSliding, span: c.notBelow0("difference", difference), grace: c.notBelow0("grace", grace)})
}

// Session are windows of records between which there is no more than gap.
func Session(gap, grace time.Duration) Windows {
	c := checks{}
	return c.of(Windows{kind: KindSession, span: c.notBelow0("gap", gap), grace: c.notBelow0("grace", grace)})
}

// WithRetention returns the same windows with rows that are kept longer. See
// the package documentation for what retention is counted from.
func (ws Windows) WithRetention(d time.Duration) Windows {
	ws.retention, ws.retains = d, true
	return ws
}

// Validate returns an error that is ErrInvalid and says all that is wrong, or
// nil.
func (ws Windows) Validate() error {
	c := checks{ws.fault}
	switch {
	case ws.kind == 0:
		return fmt.Errorf("%w: not made by Tumbling, Hopping, Sliding or Session", ErrInvalid)
	case ws.retains:
		if ms := c.notBelow0("retention", ws.retention); ms < ws.leastRetention() {
			c.addf("retention %s is below %s", ws.retention, ws.leastFormula())
		}
	}
	if c.fault != "" {
		return fmt.Errorf("%w: %s: %s", ErrInvalid, ws.kind, c.fault)
	}
	return nil
}

// Kind returns the kind.
func (ws Windows) Kind() Kind { return ws.kind }

// Size returns the size of tumbling and hopping windows in milliseconds, else
// 0.
func (ws Windows) Size() int64 { return ws.spanIf(ws.aligned()) }

// Advance returns the distance between the starts of tumbling and hopping
// windows in milliseconds, else 0. That of tumbling ones is their size.
func (ws Windows) Advance() int64 { return ws.advance }

// Difference returns the difference of sliding windows in milliseconds, else
// 0.
func (ws Windows) Difference() int64 { return ws.spanIf(ws.kind == KindSliding) }

// Gap returns the gap of session windows in milliseconds, else 0.
func (ws Windows) Gap() int64 { return ws.spanIf(ws.kind == KindSession) }

// Grace returns the grace in milliseconds.
func (ws Windows) Grace() int64 { return ws.grace }

// Retention returns the retention in milliseconds, be it set or the default.
func (ws Windows) Retention() int64 {
	if ws.retains {
		return ws.retention.Milliseconds()
	}
	return ws.leastRetention()
}

// Hold returns, in milliseconds, by how much a result that is emitted on close
// can be older than stream time. Operators behind it keep their time back by
// as much, so that it is not late for them.
func (ws Windows) Hold() int64 {
	if ws.aligned() {
		return ws.span + ws.grace
	}
	return ws.span + 1 + ws.grace
}

// String describes the windows, as in "tumbling 5m, grace 10s".
func (ws Windows) String() string {
	if ws.kind == 0 {
		return "no windows"
	}
	var b strings.Builder
	b.WriteString(ws.kind.String())
	if ws.kind == KindSession {
		b.WriteString(" gap")
	}
	b.WriteString(" " + short(duration(ws.span)))
	if ws.kind == KindHopping {
		b.WriteString(" every " + short(duration(ws.advance)))
	}
	if ws.grace == 0 {
		b.WriteString(", no grace")
	} else {
		b.WriteString(", grace " + short(duration(ws.grace)))
	}
	if ws.retains {
		b.WriteString(", retention " + short(ws.retention))
	}
	return b.String()
}

func (ws Windows) aligned() bool { return ws.kind == KindTumbling || ws.kind == KindHopping }

func (ws Windows) spanIf(is bool) int64 {
	if is {
		return ws.span
	}
	return 0
}

// leastRetention is the retention's default and minimum. It cannot overflow:
// the longest Duration is 2^63/10^6 milliseconds.
func (ws Windows) leastRetention() int64 {
	if ws.kind == KindSliding {
		return 2*ws.span + ws.grace
	}
	return ws.span + ws.grace
}

func (ws Windows) leastFormula() string {
	switch ws.kind {
	case KindSliding:
		return fmt.Sprintf("twice the difference of %s + grace of %s", duration(ws.span), duration(ws.grace))
	case KindSession:
		return fmt.Sprintf("gap of %s + grace of %s", duration(ws.span), duration(ws.grace))
	}
	return fmt.Sprintf("size of %s + grace of %s", duration(ws.span), duration(ws.grace))
}

// checks collects what is wrong with the arguments of a constructor.
type checks struct{ fault string }

func (c *checks) addf(format string, args ...any) {
	if c.fault != "" {
		c.fault += "; "
	}
	c.fault += fmt.Sprintf(format, args...)
}

func (c *checks) above0(name string, d time.Duration) int64 {
	if d <= 0 {
		c.addf("%s %s is not above 0", name, d)
		return 0
	}
	return c.whole(name, d)
}

func (c *checks) notBelow0(name string, d time.Duration) int64 {
	if d < 0 {
		c.addf("%s %s is below 0", name, d)
		return 0
	}
	return c.whole(name, d)
}

func (c *checks) whole(name string, d time.Duration) int64 {
	if d%time.Millisecond != 0 {
		c.addf("%s %s is not whole milliseconds", name, d)
	}
	return d.Milliseconds()
}

// of is ws with what was found. An advance of 0 has aligned windows contain
// nothing, and nobody divide by it.
func (c *checks) of(ws Windows) Windows {
	ws.fault = c.fault
	if c.fault != "" {
		ws.advance = 0
	}
	return ws
}

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// short is a duration without zeros at its end.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
