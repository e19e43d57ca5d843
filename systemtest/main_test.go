package systemtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/rekastream/reka/systemtest/realkafka"
)

func TestMain(m *testing.M) {
	if s, ok := serviceFromEnv(); ok { // a child process of a test
		if err := s.run(); err != nil {
			fmt.Fprintln(os.Stderr, "service:", err)
			os.Exit(1)
		}
		return
	}
	if s, ok := streamsFromEnv(); ok {
		if err := s.run(); err != nil {
			fmt.Fprintln(os.Stderr, "streams:", err)
			os.Exit(1)
		}
		return
	}
	if e, ok := emissionFromEnv(); ok {
		if err := e.run(); err != nil {
			fmt.Fprintln(os.Stderr, "emission:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	realkafka.StopShared()
	os.Exit(code)
}
