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
	code := m.Run()
	realkafka.StopShared()
	os.Exit(code)
}
