package tester

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// heard is a test that remembers what failed.
type heard struct {
	testing.TB
	errs []string
}

func (*heard) Helper() {}

func (h *heard) Errorf(format string, a ...any) { h.errs = append(h.errs, fmt.Sprintf(format, a...)) }

func (h *heard) Fatalf(format string, a ...any) { h.Errorf(format, a...) }

func TestGoldenSaysNothingOfEqualTexts(t *testing.T) {
	t.Setenv(UpdateGolden, "")
	path := filepath.Join(t.TempDir(), "x.golden")
	for _, file := range []string{"a\nb\n", "a\nb", "a\r\nb\r\n"} {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		h := &heard{TB: t}
		Golden(h, path, "a\nb\n")
		if len(h.errs) > 0 {
			t.Errorf("file %q: %q", file, h.errs)
		}
	}
}

func TestGoldenShowsWhatDiffers(t *testing.T) {
	t.Setenv(UpdateGolden, "")
	path := filepath.Join(t.TempDir(), "x.golden")
	if err := os.WriteFile(path, []byte("1\n2\n3\nold\n5\n6\n7\n8\n9\ngone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &heard{TB: t}
	Golden(h, path, "1\n2\n3\nnew\n5\n6\n7\n8\nmore\n9\n")
	want := "  ...\n  2\n  3\n- old\n+ new\n  5\n  6\n  7\n  8\n+ more\n  9\n- gone\n"
	if len(h.errs) != 1 || !strings.HasSuffix(h.errs[0], ":\n"+want) {
		t.Errorf("got %q\nwant one that ends with\n%s", h.errs, want)
	}
}

func TestGoldenWithoutAFileSaysHowToMakeIt(t *testing.T) {
	t.Setenv(UpdateGolden, "")
	path := filepath.Join(t.TempDir(), "x.golden")
	h := &heard{TB: t}
	Golden(h, path, "a")
	if len(h.errs) != 1 || h.errs[0] != "there is no golden file "+path+"; RECORD_GOLDEN=1 makes it" {
		t.Errorf("got %q", h.errs)
	}
}

func TestGoldenWritesItsFileWhenAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "x.golden")
	t.Setenv(UpdateGolden, "1")
	Golden(t, path, "a\nb")
	t.Setenv(UpdateGolden, "")
	Golden(t, path, "a\nb")
	if b, err := os.ReadFile(path); err != nil || string(b) != "a\nb\n" {
		t.Errorf("file %q, error %v", b, err)
	}
}

func TestDiffLeavesEveryLineInPlace(t *testing.T) {
	// What is left of a diff without the lines of one text is the other.
	texts := [][]string{nil, {"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"a", "b", "a", "c"}, {"c", "a", "b", "a"}, {"a", "c", "b"}}
	for _, want := range texts {
		for _, got := range texts {
			var left, right []string
			for _, l := range middle(want, got) {
				if l[0] != '+' {
					left = append(left, l[2:])
				}
				if l[0] != '-' {
					right = append(right, l[2:])
				}
			}
			if strings.Join(left, "") != strings.Join(want, "") || strings.Join(right, "") != strings.Join(got, "") {
				t.Errorf("%q to %q: %q", want, got, middle(want, got))
			}
		}
	}
}
