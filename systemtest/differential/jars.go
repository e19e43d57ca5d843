package differential

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/rekastream/reka/systemtest/realkafka"
)

// pom names the versions. The cache is keyed by its bytes.
//
//go:embed pom.xml
var pom []byte

// program is the source of the Java side.
//
//go:embed testdata/Differential.java
var program []byte

// address is left out of messages: where jars come from is the machine's
// business.
var address = regexp.MustCompile(`[a-z]+://[^\s)]+`)

// classPath returns Java's class path, fetching jars and compiling the
// program once.
var classPath = sync.OnceValues(prepare)

func prepare() (string, error) {
	for _, tool := range []string{"java", "javac"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%w: no %s: %w", realkafka.ErrUnavailable, tool, err)
		}
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "reka-systemtest", fmt.Sprintf("%x", sha256.Sum256(pom))[:16])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	libs, err := once(filepath.Join(dir, "libs"), fetch)
	if err != nil {
		return "", err
	}
	classes, err := once(filepath.Join(dir, fmt.Sprintf("classes-%x", sha256.Sum256(program))[:24]), func(fresh string) error {
		return compile(libs, fresh)
	})
	return classes + string(os.PathListSeparator) + filepath.Join(libs, "*"), err
}

// once fills dir by make, unless it is there. Several test binaries may do so
// at a time: each fills a directory of its own, and the first one to finish
// gives its to all.
func once(dir string, fill func(fresh string) error) (string, error) {
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "fresh-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	got := filepath.Join(fresh, "got")
	if err := os.Mkdir(got, 0o700); err != nil {
		return "", err
	}
	if err := fill(got); err != nil {
		return "", err
	}
	if err := os.Rename(got, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return "", err
		}
	}
	return dir, nil
}

func fetch(fresh string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("%w: no mvn to fetch its jars with: %w", realkafka.ErrUnavailable, err)
	}
	file := filepath.Join(filepath.Dir(fresh), "pom.xml")
	if err := os.WriteFile(file, pom, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), mvn, "-q", "-B", "-f", file, "dependency:copy-dependencies", "-DoutputDirectory="+fresh) //nolint:gosec // the Maven of the machine
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch the jars of Kafka Streams: %w\n%s", err, address.ReplaceAll(out, []byte("(address)")))
	}
	return nil
}

func compile(libs, fresh string) error {
	source := filepath.Join(filepath.Dir(fresh), "Differential.java")
	if err := os.WriteFile(source, program, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "javac", "-cp", filepath.Join(libs, "*"), "-d", fresh, source) //nolint:gosec // the compiler of the machine
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("javac: %w\n%s", err, out)
	}
	return nil
}
