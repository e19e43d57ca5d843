package tester

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// UpdateGolden is the environment variable that makes Golden write files
// instead of comparing them: RECORD_GOLDEN=1 go test ./...
const UpdateGolden = "RECORD_GOLDEN"

// Golden fails the test if text is not what the file at path holds, and says
// what differs. It pins what should change only on purpose, such as the
// description of a graph, and with it the names of its stores and topics:
//
//	tester.Golden(t, "testdata/graph.golden", graph.Describe().String())
//
// Paths are relative to the folder of the test's package. With UpdateGolden
// set, the file is written; look at its difference before you commit it. Line
// ends of Windows and one at the end of the text make no difference.
func Golden(tb testing.TB, path, text string) {
	tb.Helper()
	got := goldenLines(text)
	if os.Getenv(UpdateGolden) != "" {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(strings.Join(got, "\n")+"\n"), 0o600)); err != nil {
			tb.Fatalf("golden file: %v", err)
		}
		return
	}
	b, err := os.ReadFile(filepath.Clean(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		tb.Errorf("there is no golden file %s; %s=1 makes it", path, UpdateGolden)
		return
	case err != nil:
		tb.Errorf("golden file: %v", err)
		return
	}
	if d := lineDiff(goldenLines(string(b)), got); d != "" {
		tb.Errorf("the text is not that of %s (-: in the file, +: now); if that is intended, %s=1 writes it:\n%s", path, UpdateGolden, d)
	}
}

func goldenLines(text string) []string {
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
}
