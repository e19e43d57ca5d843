package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func aPicture() picture {
	p := picture{
		elapsed: 3 * time.Second, url: "http://127.0.0.1:8080", clicked: 12_345, counted: 12_300, rate: 4_000,
		processor: "serving, pid 17", view: "ready, 0 behind",
		partitions: []partitionPicture{{"running", 2_000, 5}, {"down", 0, 4_000}},
	}
	for i := range 30 {
		p.top = append(p.top, rank{userName(i), int64(1_000 - i)})
	}
	return p
}

func TestPictureFitsItsTerminal(t *testing.T) {
	for _, size := range [][2]int{{20, 5}, {40, 12}, {80, 24}, {200, 60}} {
		width, height := size[0], size[1]
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		f := newFeed()
		f.sayf("%s", strings.Repeat("long ", 100))
		s := &painted{out: out, feed: f, size: func() (int, int) { return width, height }}
		s.show(aPicture)
		s.close(aPicture)
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		frames := strings.Split(string(raw), clearBelow)
		if len(frames) != 3 || frames[2] != showCursor {
			t.Fatalf("%d frames, at the end %q", len(frames), frames[len(frames)-1])
		}
		if n := strings.Count(frames[0], "\n"); n >= height || n != s.rows {
			t.Errorf("%dx%d: %d lines", width, height, n)
		}
		for line := range strings.SplitSeq(frames[0], "\n") {
			if n := utf8.RuneCountInString(withoutEscapes(line)); n > width {
				t.Errorf("%dx%d: a line of %d cells: %q", width, height, n, line)
			}
		}
	}
}

func TestPlainOutputHasNoEscapeCodes(t *testing.T) {
	line := aPicture().line()
	want := "  3.0 s  clicked 12345, counted 12300 (4000/s), lag 4005; 0:running 1:down; top: ada 1000, alan 999, barbara 998"
	if line != want {
		t.Errorf("line\n%q, want\n%q", line, want)
	}
}

func TestNumbersAndBars(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1_000: "1,000", 1_234_567: "1,234,567", -1_000: "-1,000"} {
		if got := number(n); got != want {
			t.Errorf("number(%d) = %s", n, got)
		}
	}
	for share, want := range map[float64]string{0: "", 0.5: "██", 0.53125: "██▏", 1: "████", 7: "████", -1: ""} {
		if got := bar(share, 4); got != want {
			t.Errorf("bar(%v) = %q, want %q", share, got, want)
		}
	}
	if bar(1, -3) != "" {
		t.Error("a bar without room")
	}
}

func TestMeterAveragesOverASecond(t *testing.T) {
	var m meter
	now := time.Unix(0, 0)
	for i := range int64(100) {
		now = now.Add(100 * time.Millisecond)
		m.read(now, i*50)
	}
	if m.rate < 499 || m.rate > 501 {
		t.Errorf("rate %v, want 500", m.rate)
	}
	now = now.Add(100 * time.Millisecond)
	if m.read(now, 0); m.rate > 451 {
		t.Errorf("rate %v after the counter went back", m.rate)
	}
}

func withoutEscapes(s string) string {
	for {
		from := strings.IndexByte(s, '\x1b')
		if from < 0 {
			return s
		}
		to := strings.IndexAny(s[from+2:], "ABCDHJKhlm")
		s = s[:from] + s[from+2+to+1:]
	}
}
