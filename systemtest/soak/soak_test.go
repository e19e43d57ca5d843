package soak

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rekastream/reka/systemtest/realkafka"
)

func TestMain(m *testing.M) {
	if code, child := Child(); child { // a process of the test service
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func fileSize(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// setting reads a number from the environment.
func setting(t *testing.T, name string, otherwise float64) float64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// Three minutes in CI, one elsewhere, or SOAK_MINUTES; SOAK_SEED and
// SOAK_GUARANTEE choose what is run. SOAK_DIR keeps logs and state.
func TestSoakLosesNothingDoublesNothingAndGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: left out with -short")
	}
	realkafka.Need(t)
	minutes := 1.0
	if os.Getenv("CI") == "true" {
		minutes = 3
	}
	cfg := Config{
		Seed:     uint64(setting(t, "SOAK_SEED", 7)),
		Duration: time.Duration(setting(t, "SOAK_MINUTES", minutes) * float64(time.Minute)),
		Dir:      t.TempDir(),
	}
	if g := os.Getenv("SOAK_GUARANTEE"); g != "" {
		var err error
		if cfg.Guarantee, err = ParseGuarantee(g); err != nil {
			t.Fatal(err)
		}
	}
	if dir := os.Getenv("SOAK_DIR"); dir != "" {
		cfg.Dir = filepath.Join(dir, strconv.FormatInt(time.Now().UnixNano(), 36))
	}
	res, err := Run(t.Context(), cfg)
	if err != nil {
		show(t, cfg.Dir)
		t.Fatalf("%v\nreplay: %s", err, cfg.Replay())
	}
	t.Log(res.Line())
	if res.OK() {
		return
	}
	t.Error(res.Report())
	show(t, cfg.Dir)
}

// show logs what happened, and the end of each process's log: the directory
// may be gone when somebody reads this.
func show(t *testing.T, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Error(err)
	}
	const most = 20_000
	for _, file := range logs {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		t.Logf("%s:\n%s", filepath.Base(file), b[max(0, len(b)-most):])
	}
}
