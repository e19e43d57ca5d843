// Package service is the frame around the examples: flags, a client, a state
// directory, and an orderly end on Ctrl-C.
package service

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/badgerstore"
)

// Build makes the parts of a service. The test of an example gives it the
// client and the storage of a tester's instance.
type Build func(*kafka.Client, storage.Builder) ([]reka.Runner, error)

// Stream is a topic of facts: it keeps them for as long as the broker keeps
// everything.
func Stream(name string) kafka.TopicSpec { return kafka.TopicSpec{Name: name} }

// Table is a topic of rows: it keeps the last one of each key for ever.
func Table(name string) kafka.TopicSpec {
	return kafka.TopicSpec{Name: name, Configs: map[string]string{"cleanup.policy": "compact"}}
}

// Windows is a topic of rows of windows: it keeps the last one of each, for as
// long as the broker keeps everything.
func Windows(name string) kafka.TopicSpec {
	return kafka.TopicSpec{Name: name, Configs: map[string]string{"cleanup.policy": "compact,delete"}}
}

// Kept is a topic of facts that keeps them for ever: of records that are old
// by their own time the broker would keep none.
func Kept(name string) kafka.TopicSpec {
	return kafka.TopicSpec{Name: name, Configs: map[string]string{"retention.ms": "-1"}}
}

// Main runs a service until it is interrupted. Topics are those that somebody
// else would have made: inputs, outputs, and tables that no group keeps.
func Main(build Build, topics ...kafka.TopicSpec) {
	brokers := flag.String("brokers", "localhost:9092", "host:port of brokers, separated by commas")
	dir := flag.String("state", filepath.Join(os.TempDir(), "reka-"+filepath.Base(os.Args[0])), "directory of the state")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Split(*brokers, ","), badgerstore.In(*dir), build, topics); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, brokers []string, st storage.Builder, build Build, topics []kafka.TopicSpec) error {
	client, err := kafka.NewClient(brokers)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.EnsureTopics(ctx, topics...); err != nil {
		return err
	}
	runners, err := build(client, st)
	if err != nil {
		return err
	}
	return reka.Run(ctx, runners...)
}
