package realkafka

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
)

// pom names the versions. The cache is keyed by its bytes.
//
//go:embed pom.xml
var pom []byte

// address is left out of messages: where jars come from is the machine's
// business.
var address = regexp.MustCompile(`[a-z]+://[^\s)]+`)

// ErrUnavailable says that the machine lacks what real Kafka needs.
var ErrUnavailable = errors.New("real Kafka is not available")

// jars returns the directory that holds Kafka's jars, fetching them once.
var jars = sync.OnceValues(fetchJars)

func fetchJars() (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", fmt.Errorf("%w: no java: %w", ErrUnavailable, err)
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	libs := filepath.Join(dir, "libs")
	if _, err := os.Stat(libs); err == nil {
		return libs, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("%w: no mvn to fetch its jars with: %w", ErrUnavailable, err)
	}
	// Several test binaries may fetch at once: each into a directory of its
	// own, and the first one to finish gives its to all.
	fresh, err := os.MkdirTemp(dir, "fetch-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	file := filepath.Join(fresh, "pom.xml")
	if err := os.WriteFile(file, pom, 0o600); err != nil {
		return "", err
	}
	got := filepath.Join(fresh, "libs")
	cmd := exec.Command(mvn, "-q", "-B", "-f", file, "dependency:copy-dependencies", "-DoutputDirectory="+got)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetch Kafka's jars: %w\n%s", err, address.ReplaceAll(out, []byte("(address)")))
	}
	if err := os.Rename(got, libs); err != nil {
		if _, there := os.Stat(libs); there != nil {
			return "", err
		}
	}
	return libs, nil
}

// cacheDir returns the directory that is kept between runs.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "reka-systemtest", fmt.Sprintf("%x", sha256.Sum256(pom))[:16])
	return dir, os.MkdirAll(dir, 0o700)
}
