package kafka_test

import (
	"strings"
	"testing"

	"github.com/rekastream/reka/kafka"
)

func TestNewClientRefusesWhatCannotBeDialled(t *testing.T) {
	for _, b := range []string{
		"", "localhost", "localhost:", ":9092", "http://localhost:9092", "localhost:9092,localhost:9093",
		"localhost:kafka", "localhost:0", "localhost:70000", " localhost:9092", "a/b:9092", "::1:9092",
	} {
		c, err := kafka.NewClient([]string{"127.0.0.1:9092", b})
		if err == nil {
			c.Close()
			t.Errorf("broker %q is accepted", b)
		} else if !strings.Contains(err.Error(), "broker") {
			t.Errorf("broker %q: error %q does not name it", b, err)
		}
	}
	if _, err := kafka.NewClient(nil); err == nil {
		t.Error("no brokers are accepted")
	}
}

func TestNewClientDoesNotDial(t *testing.T) {
	c, err := kafka.NewClient([]string{"localhost:9092", "127.0.0.1:1", "[::1]:9092", "broker-1.example.org:9093"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNewClientRefusesNilOptions(t *testing.T) {
	for name, o := range map[string]kafka.Option{"option": nil, "partitioner": kafka.WithPartitioner(nil)} {
		if _, err := kafka.NewClient([]string{"localhost:9092"}, o); err == nil {
			t.Errorf("a nil %s is accepted", name)
		}
	}
}
