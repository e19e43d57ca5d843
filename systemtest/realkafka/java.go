package realkafka

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// RunJava compiles a Java source file, once for its bytes, against Kafka's
// jars, and runs its class, which has the file's name, with args. It returns
// what the program printed to its standard output. It must end with status 0.
func RunJava(ctx context.Context, tb testing.TB, source string, args ...string) string {
	tb.Helper()
	Need(tb)
	out, err := runJava(ctx, source, args)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func runJava(ctx context.Context, source string, args []string) (string, error) {
	libs, err := jars()
	if err != nil {
		return "", err
	}
	classes, err := compileJava(ctx, libs, source)
	if err != nil {
		return "", err
	}
	class := strings.TrimSuffix(filepath.Base(source), ".java")
	all := append([]string{
		"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", classes + string(os.PathListSeparator) + libs + "/*", class,
	}, args...)
	cmd := exec.CommandContext(ctx, "java", all...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	dieWithParent(cmd)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("java %s: %w\n%s%s", class, err, out.Bytes(), errs.Bytes())
	}
	return out.String(), nil
}

// compileJava returns the directory of the classes.
func compileJava(ctx context.Context, libs, source string) (string, error) {
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	classes := filepath.Join(dir, fmt.Sprintf("classes-%x", sha256.Sum256(text))[:24])
	if _, err := os.Stat(classes); err == nil {
		return classes, nil
	}
	fresh, err := os.MkdirTemp(dir, "javac-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	cmd := exec.CommandContext(ctx, "javac", "-cp", libs+"/*", "-d", fresh, source)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("javac %s: %w\n%s", filepath.Base(source), err, out)
	}
	if err := os.Rename(fresh, classes); err != nil {
		if _, there := os.Stat(classes); there != nil {
			return "", err
		}
	}
	return classes, nil
}
