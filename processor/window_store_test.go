package processor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/window"
)

func at(ms int64) time.Time { return time.UnixMilli(ms) }

// commanded runs a command for each record, and writes what it returns.
func commanded(t *testing.T, run func(ctx *processor.Context, words []string) string, edges ...processor.Edge) *clockwork {
	t.Helper()
	return clocked(t, func(out *processor.Sink[string]) []processor.Edge {
		return append(edges, processor.Input(ticks, func(ctx *processor.Context, v string) error {
			if got := run(ctx, strings.Fields(v)); got != "" {
				out.Emit(ctx, ctx.Key(), got)
			}
			return nil
		}))
	})
}

// num reads a number.
func num(s string) (n int64) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

func TestWindowRowsOfAKeyAreFetchedByTimeInBothDirections(t *testing.T) {
	rows := processor.WindowStore("windows", window.Tumbling(10*time.Millisecond, window.NoGrace).WithRetention(time.Hour), codec.String())
	c := commanded(t, func(ctx *processor.Context, w []string) string {
		switch w[0] {
		case "set":
			rows.Set(ctx, ctx.Key(), at(num(w[1])), w[2])
			return ""
		case "get":
			v, ok := rows.Get(ctx, ctx.Key(), at(num(w[1])))
			return fmt.Sprint(v, ok)
		case "delete":
			rows.Delete(ctx, ctx.Key(), at(num(w[1])))
			return ""
		}
		var got []string
		from, to := time.Time{}, time.Time{}
		if len(w) > 1 {
			from, to = at(num(w[1])), at(num(w[2]))
		}
		switch w[0] {
		case "fetch":
			for start, v := range rows.Fetch(ctx, ctx.Key(), from, to) {
				got = append(got, fmt.Sprintf("%d=%s", start.UnixMilli(), v))
			}
		case "reverse":
			for start, v := range rows.FetchReverse(ctx, ctx.Key(), from, to) {
				got = append(got, fmt.Sprintf("%d=%s", start.UnixMilli(), v))
			}
		case "all":
			for r := range rows.FetchAll(ctx, from, to) {
				got = append(got, fmt.Sprintf("%q@%d=%s", r.Key, r.Window.Start, r.Value))
			}
		}
		return strings.Join(got, " ")
	}, rows)
	for _, key := range []string{"a", "aa", "a\x00", "a\xff", ""} {
		for i := range int64(4) {
			c.send(key, fmt.Sprintf("set %d %d", 10*i, i), 1)
		}
	}
	c.send("aa", "set 20 x", 1)
	c.send("a", "fetch", 1)
	c.wants("0=0 10=1 20=2 30=3")
	c.send("a", "fetch 10 20", 1)
	c.wants("10=1 20=2")
	c.send("a\x00", "reverse 10 30", 1)
	c.wants("30=3 20=2 10=1")
	c.send("aa", "get 20", 1)
	c.wants("xtrue")
	c.send("a", "delete 20", 1)
	c.send("a", "get 20", 1)
	c.wants("false")
	c.app.Crash()
	c.app.Restart()
	c.send("a", "all 20 20", 1)
	c.wants(`""@20=2 "a\x00"@20=2 "aa"@20=x "a\xff"@20=2`)
}

func TestWindowRowsGoWhenTheirRetentionIsOver(t *testing.T) {
	rows := processor.WindowStore("windows", window.Tumbling(10*time.Millisecond, 5*time.Millisecond), codec.String())
	c := commanded(t, func(ctx *processor.Context, w []string) string {
		if w[0] == "set" {
			return fmt.Sprint(rows.Set(ctx, ctx.Key(), at(num(w[1])), "v"))
		}
		n := 0
		for range rows.FetchAll(ctx, time.Time{}, time.Time{}) {
			n++
		}
		return fmt.Sprint(n)
	}, rows)
	c.send("a", "set 0", 0)
	c.send("b", "set 10", 10)
	c.send("a", "count", 14)
	c.send("a", "count", 15)
	c.send("a", "set 0", 15)
	c.send("a", "count", 1000)
	c.wants("true true 2 1 false 0") //nolint:dupword // two answers
	c.tt.Settle()
	c.tt.Compact("clockwork-windows-changelog")
	live := 0
	for _, r := range c.tt.Raw("clockwork-windows-changelog", 0) {
		if r.Value != nil {
			live++
		}
	}
	if live != 0 {
		t.Errorf("%d rows are left in the changelog", live)
	}
}

func TestSessionsAreFoundByTheTimesThatTheyCover(t *testing.T) {
	rows := processor.SessionStore("sessions", window.Session(10*time.Millisecond, window.NoGrace).WithRetention(time.Hour), codec.String())
	c := commanded(t, func(ctx *processor.Context, w []string) string {
		switch w[0] {
		case "set":
			rows.Set(ctx, ctx.Key(), window.Window{Start: num(w[1]), End: num(w[2])}, w[3])
			return ""
		case "delete":
			rows.Delete(ctx, ctx.Key(), window.Window{Start: num(w[1]), End: num(w[2])})
			return ""
		}
		var got []string
		find := rows.Find(ctx, ctx.Key(), at(num(w[1])), at(num(w[2])))
		if w[0] == "reverse" {
			find = rows.FindReverse(ctx, ctx.Key(), at(num(w[1])), at(num(w[2])))
		}
		for win, v := range find {
			got = append(got, fmt.Sprintf("[%d..%d]=%s", win.Start, win.End, v))
		}
		return strings.Join(got, " ")
	}, rows)
	c.send("k", "delete 1 2", 1) // was never there
	c.send("k", "set 0 10 a", 1)
	c.send("k", "set 30 50 b", 1)
	c.send("k", "set 70 70 c", 1)
	c.send("kk", "set 30 40 other", 1)
	c.send("k", "find 10 30", 1)
	c.wants("[0..10]=a [30..50]=b")
	c.send("k", "find 35 40", 1)
	c.wants("[30..50]=b")
	c.send("k", "find 51 69", 1)
	c.wants("")
	c.send("k", "reverse 0 100", 1)
	c.wants("[70..70]=c [30..50]=b [0..10]=a")
	c.send("k", "delete 30 50", 1)
	c.app.Crash()
	c.app.Restart()
	c.send("k", "find 0 100", 1)
	c.wants("[0..10]=a [70..70]=c")
}

func TestVersionsAnswerAsOfATime(t *testing.T) {
	rows := processor.VersionedStore("versions", 100*time.Millisecond, codec.String())
	c := commanded(t, func(ctx *processor.Context, w []string) string {
		switch w[0] {
		case "set":
			return fmt.Sprint(rows.Set(ctx, ctx.Key(), at(num(w[1])), w[2]))
		case "delete":
			return fmt.Sprint(rows.Delete(ctx, ctx.Key(), at(num(w[1]))))
		case "get":
			v, since, ok := rows.Get(ctx, ctx.Key())
			return fmt.Sprint(v, since.UnixMilli(), ok)
		}
		v, since, ok := rows.AsOf(ctx, ctx.Key(), at(num(w[1])))
		if !ok {
			return "none"
		}
		return fmt.Sprint(v, since.UnixMilli(), ok)
	}, rows)
	c.send("k", "set 10 a", 10)
	c.send("k", "set 30 c", 30)
	c.send("k", "set 20 b", 30) // out of order
	c.send("k", "delete 40", 40)
	c.send("k", "asof 9", 40)
	c.send("k", "asof 19", 40)
	c.send("k", "asof 20", 40)
	c.send("k", "asof 35", 40)
	c.send("k", "asof 40", 40)
	c.wants("true true true true none a10 true b20 true c30 true none") //nolint:dupword // four answers
	c.send("k", "set 50 d", 50)
	c.send("k", "get", 500)
	c.send("k", "asof 35", 500) // beyond the history: gone
	c.send("k", "set 399 x", 500)
	c.send("k", "set 400 e", 500)
	c.send("k", "get", 500)
	c.wants("true d50 true none false true e400 true")
}
