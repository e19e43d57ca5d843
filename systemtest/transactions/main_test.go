package transactions

import (
	"flag"
	"os"
	"testing"

	"github.com/rekastream/reka/systemtest/realkafka"
)

// address names a Kafka to use instead of starting one.
var address = flag.String("kafka", "", "address of a running Kafka; empty: start one")

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	realkafka.StopShared()
	os.Exit(code)
}

// realBrokers returns the addresses of a real Kafka.
func realBrokers(t *testing.T) []string {
	t.Helper()
	if *address != "" {
		return []string{*address}
	}
	return realkafka.Shared(t).Brokers()
}
