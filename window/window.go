package window

import (
	"math"
	"time"
)

// Window is one window, in milliseconds since the epoch.
type Window struct {
	Start int64 // inclusive

	// End is exclusive for tumbling and hopping windows. It is inclusive for
	// sliding ones, where it is Start plus the difference, and for sessions,
	// where it is the time of the last record.
	End int64
}

// StartTime is Start as a time.
func (w Window) StartTime() time.Time { return time.UnixMilli(w.Start) }

// EndTime is End as a time.
func (w Window) EndTime() time.Time { return time.UnixMilli(w.End) }

// Merge returns the session that two sessions become.
func (w Window) Merge(o Window) Window { return Window{min(w.Start, o.Start), max(w.End, o.End)} }

// At returns the tumbling, hopping or sliding window that starts at start. It
// does not ask whether one does. A session that starts there has one record.
func (ws Windows) At(start int64) Window {
	if ws.kind == KindSession {
		return Window{start, start}
	}
	return Window{start, add(start, ws.span)}
}

// ExclusiveEnd returns the first moment that no record of w can have: start +
// size, start + difference + 1, or last + gap + 1.
func (ws Windows) ExclusiveEnd(w Window) int64 {
	switch ws.kind {
	case KindSession:
		return add(w.End, ws.span+1)
	case KindSliding:
		return add(w.Start, ws.span+1)
	}
	return add(w.Start, ws.span)
}

// CloseTime returns the stream time at which w is closed: its exclusive end
// plus grace.
func (ws Windows) CloseTime(w Window) int64 { return add(ws.ExclusiveEnd(w), ws.grace) }

// Closed reports whether w is closed. Nothing else decides that.
func (ws Windows) Closed(w Window, streamTime int64) bool { return streamTime >= ws.CloseTime(w) }

// ExpiryTime returns the stream time at which the row of w expires. It is
// what CloseTime would be with a grace of retention less size, difference or
// gap; that is never before CloseTime.
func (ws Windows) ExpiryTime(w Window) int64 {
	return add(ws.ExclusiveEnd(w), max(ws.Retention()-ws.span, 0))
}

// Expired reports whether the row of w is not visible any more.
func (ws Windows) Expired(w Window, streamTime int64) bool { return streamTime >= ws.ExpiryTime(w) }

// Left returns the sliding window that a record at t ends, [t-difference..t],
// or [0..difference] if t is earlier than difference. t is not below 0.
func (ws Windows) Left(t int64) Window { return ws.At(max(t-ws.span, 0)) }

// Right returns the sliding window that begins behind a record at t,
// [t+1..t+1+difference]. There is none at the end of time.
func (ws Windows) Right(t int64) (Window, bool) {
	if t == math.MaxInt64 {
		return Window{}, false
	}
	return ws.At(t + 1), true
}

// Touches reports whether a record at t is within gap of the session w, or in
// it. Whether w is closed is not asked.
func (ws Windows) Touches(w Window, t int64) bool {
	return t >= w.Start-ws.span && t <= add(w.End, ws.span)
}

// add adds d ≥ 0 to t. Past the end of time it stays there.
func add(t, d int64) int64 {
	if s := t + d; s >= t {
		return s
	}
	return math.MaxInt64
}
