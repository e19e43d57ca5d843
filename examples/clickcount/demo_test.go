package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/tester"
)

// TestMain lets the test binary play the demo's two roles.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 3 && os.Args[1] == counterRole:
		os.Exit(counterMain(os.Args[2]))
	case len(os.Args) > 1 && os.Args[1] == "demo":
		opts, err := parse(os.Args[2:])
		if err != nil {
			os.Exit(2)
		}
		os.Exit(demoMain(opts, os.Stdout))
	}
	os.Exit(m.Run())
}

func demoCommand(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	cmd := exec.Command(self, append([]string{"demo", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

func TestDemoSurvivesItsKillAndEndsWithEqualCounts(t *testing.T) {
	cmd, out := demoCommand(t, "--duration", "4s", "--rate", "2000")
	start := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("the demo failed: %v\n%s", err, out)
	}
	if took := time.Since(start); took > 40*time.Second {
		t.Errorf("the demo took %v", took)
	}
	for _, want := range []string{"was killed (SIGKILL)", "EQUAL: the counts of all", "0:running"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not say %q:\n%s", want, out)
		}
	}
}

func TestInterruptEndsTheDemoWithinASecond(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no interrupts from outside on Windows")
	}
	for _, wait := range []string{"brokers", "the API answers", "was killed"} {
		t.Run("after "+wait, func(t *testing.T) {
			cmd, _ := demoCommand(t, "--duration", "2s", "--forever")
			lines, err := newLines(cmd)
			if err != nil {
				t.Fatal(err)
			}
			if !lines.until(wait) {
				t.Fatalf("the demo ended early: %v\n%s", cmd.Wait(), lines.seen())
			}
			start := time.Now()
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			lines.rest()
			err = cmd.Wait()
			var status *exec.ExitError
			if !errors.As(err, &status) || status.ExitCode() != 130 {
				t.Errorf("the demo ended with %v\n%s", err, lines.seen())
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("the demo ended %v after the interrupt", took)
			}
		})
	}
}

func TestCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{{"--rate", "0"}, {"--duration", "1s"}, {"--nonsense"}} {
		cmd, out := demoCommand(t, args...)
		var status *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &status) || status.ExitCode() != 2 || out.Len() == 0 {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

func TestClickThatComesAgainIsCountedOnce(t *testing.T) {
	tt := tester.New(t)
	n := names{"test"}
	in := tester.Input(tt, n.clicks())
	app := tt.Start("counter", func(i *tester.Instance) ([]reka.Runner, error) {
		g, err := countingGraph(n)
		if err != nil {
			return nil, err
		}
		p, err := processor.New(i.Client(), g, processor.WithStorage(i.Storage()))
		return []reka.Runner{p}, err
	})
	for i := range 100 {
		if i%10 == 5 {
			// The table's change is written, the offset is not: the click
			// comes again.
			tt.Fail(tester.Fault{Op: tester.OpCommit, Do: tester.CrashBefore})
		}
		in.Send(fmt.Sprint("user-", i%3), Click{Page: "/"})
		tt.Settle()
		if app.Crashed() {
			app.Restart()
		}
	}
	for user, row := range tester.Table(tt, n.counts()).All() {
		if want := int64(33); row.Clicks != want && !(user == "user-0" && row.Clicks == 34) {
			t.Errorf("%s: %d clicks", user, row.Clicks)
		}
	}
}
