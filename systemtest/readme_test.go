package systemtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/emitter"
	"github.com/rekastream/reka/systemtest/fakekafka"
)

// A newcomer follows the README in an empty folder: the program on its page
// of use builds against this checkout, counts, and answers.
func TestReadmeProgramBuildsInAnEmptyFolderCountsAndAnswers(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(readmeProgram(t, root)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"go mod init example.com/clicks",
		"go mod edit -replace github.com/rekastream/reka=" + root,
		"go mod tidy",
		"go vet .",
		"go build -o clicks .",
	} {
		f := strings.Fields(command)
		cmd := exec.Command(f[0], f[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}

	b := broker{brokers: fakekafka.Start(t, fakekafka.Config{}).Brokers()}
	addr := freeAddress(t)
	app := exec.Command(filepath.Join(dir, "clicks"), b.brokers[0], addr)
	app.Dir, app.Stderr = dir, os.Stderr
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Process.Kill() }() // already gone if all went well

	type click struct{ Page string }
	c := b.client(t)
	b.topics(t, c, 6, "clicks")
	e, err := emitter.New(c, reka.NewStream("clicks", codec.JSON[click]()))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := e.Emit(t.Context(), "alice", click{"/"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	answer := ""
	until(t, func() bool {
		answer = get(t.Context(), "http://"+addr+"/users/alice")
		return answer == "200 3"
	}, func() string { return "alice: " + answer })
	if got := get(t.Context(), "http://"+addr+"/users/bob"); !strings.HasPrefix(got, "404") {
		t.Errorf("bob: %s, want 404", got)
	}
	if err := app.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := app.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// readmeProgram returns the first program of the README.
func readmeProgram(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```go\n// main.go")
	program, _, end := strings.Cut(rest, "```")
	if !ok || !end {
		t.Fatal("the README has no program")
	}
	return "// main.go" + program
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// get returns status and body of an answer in one line.
func get(ctx context.Context, url string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", res.StatusCode, strings.TrimSpace(string(body)))
}
