package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode/utf16"

	"github.com/IBM/sarama"
)

// offsetsTopic is where brokers keep the offsets of groups.
const offsetsTopic = "__consumer_offsets"

func (a *saramaAdmin) Writers(ctx context.Context, partitions ...TopicPartition) (map[TopicPartition][]Writer, error) {
	writers := map[TopicPartition][]Writer{}
	err := a.onLeaders(ctx, "asking for open transactions", partitions,
		func(addr string, asked []TopicPartition) (map[TopicPartition]sarama.KError, error) {
			return a.producers(ctx, addr, asked, writers)
		})
	if err != nil {
		return nil, err
	}
	return writers, a.nameWriters(ctx, writers)
}

func (a *saramaAdmin) GroupWriters(ctx context.Context, group string) ([]Writer, error) {
	found, err := a.d.describe(ctx, offsetsTopic)
	if err == nil && found[offsetsTopic] == nil {
		err = topicError(offsetsTopic, ErrUnknownTopic)
	}
	if err != nil {
		return nil, fmt.Errorf("group %q: %w", group, err)
	}
	tp := TopicPartition{offsetsTopic, groupPartition(group, int32(len(found[offsetsTopic].parts)))}
	writers, err := a.Writers(ctx, tp)
	if err != nil {
		return nil, fmt.Errorf("group %q: %w", group, err)
	}
	return writers[tp], nil
}

// groupPartition places a group as brokers do: by the absolute value of the
// hash of a Java string, which is zero if there is none.
func groupPartition(group string, n int32) int32 {
	var hash int32
	for _, unit := range utf16.Encode([]rune(group)) {
		hash = 31*hash + int32(unit)
	}
	if hash == math.MinInt32 {
		return 0
	}
	return max(hash, -hash) % n
}

// producers asks one leader who has a transaction open in its partitions.
func (a *saramaAdmin) producers(ctx context.Context, addr string, asked []TopicPartition, into map[TopicPartition][]Writer) (map[TopicPartition]sarama.KError, error) {
	byTopic := map[string][]int32{}
	for _, tp := range asked {
		byTopic[tp.Topic] = append(byTopic[tp.Topic], tp.Partition)
	}
	req := &sarama.DescribeProducersRequest{}
	for topic, partitions := range byTopic {
		req.Topics = append(req.Topics, sarama.DescribeProducersRequestTopic{Name: topic, PartitionIndexes: partitions})
	}
	var answer *sarama.DescribeProducersResponse
	if err := a.inspect.do(ctx, addr, func(b *sarama.Broker) (err error) {
		answer, err = b.DescribeProducers(req)
		return err
	}); err != nil {
		return nil, err
	}
	codes := map[TopicPartition]sarama.KError{}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			tp := TopicPartition{t.Name, p.PartitionIndex}
			codes[tp] = p.ErrorCode
			if open := openOnes(p.ActiveProducers); len(open) > 0 {
				into[tp] = open
			}
		}
	}
	return codes, nil
}

// openOnes picks the producers that have a transaction open.
func openOnes(producers []sarama.ProducerState) []Writer {
	var open []Writer
	for _, p := range producers {
		if p.CurrentTxnStartOffset >= 0 {
			open = append(open, Writer{ProducerID: p.ProducerID, ProducerEpoch: p.ProducerEpoch, Start: p.CurrentTxnStartOffset})
		}
	}
	slices.SortFunc(open, func(x, y Writer) int { return cmp.Compare(x.Start, y.Start) })
	return open
}

// nameWriters finds the transactional ids of producers. Whoever coordinates
// one knows it, which may be any of the brokers: all are asked at once, until
// each producer has its name or each broker has answered.
func (a *saramaAdmin) nameWriters(ctx context.Context, writers map[TopicPartition][]Writer) error {
	names := map[int64]string{} // "": not known yet
	for _, ws := range writers {
		for _, w := range ws {
			names[w.ProducerID] = ""
		}
	}
	if len(names) == 0 {
		return nil
	}
	err := a.d.retry(ctx, "asking for transactional ids", func() error {
		unknown := make([]int64, 0, len(names))
		for id, name := range names {
			if name == "" {
				unknown = append(unknown, id)
			}
		}
		return a.askNames(ctx, unknown, names)
	})
	if err != nil {
		return fmt.Errorf("transactional ids of open transactions: %w", err)
	}
	for _, ws := range writers {
		for i := range ws {
			ws[i].TransactionalID = names[ws[i].ProducerID]
		}
	}
	return nil
}

// askNames asks all brokers once. It returns nil as soon as each of unknown
// has its name, or if all have answered; else the brokers' trouble.
func (a *saramaAdmin) askNames(ctx context.Context, unknown []int64, names map[int64]string) error {
	addrs := a.d.meta.addrs()
	if len(addrs) == 0 {
		return sarama.ErrBrokerNotAvailable
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var errs []error
	left := len(unknown)
	var wg sync.WaitGroup
	for _, addr := range addrs {
		wg.Go(func() { // ends with the broker's answer or ctx; waited for below
			states, err := a.transactions(ctx, addr, unknown)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
			for _, s := range states {
				if name, asked := names[s.ProducerID]; asked && name == "" {
					names[s.ProducerID] = s.TransactionalID
					left--
				}
			}
			if left <= 0 {
				cancel() // nobody else can tell more
			}
		})
	}
	wg.Wait()
	if left <= 0 || len(errs) == 0 {
		return nil
	}
	return firstFinal(errs)
}

// firstFinal is one of errs that waiting does not help, or all of them.
func firstFinal(errs []error) error {
	for _, err := range errs {
		if !retriable(err) {
			return err
		}
	}
	return stillAwayError{errors.Join(errs...)}
}

// transactions asks one broker for those of some producers that it
// coordinates.
func (a *saramaAdmin) transactions(ctx context.Context, addr string, producers []int64) ([]sarama.ListTransactionsResponseTransactionState, error) {
	var answer *sarama.ListTransactionsResponse
	if err := a.inspect.do(ctx, addr, func(b *sarama.Broker) (err error) {
		req := sarama.NewListTransactionsRequest(sarama.V3_0_0_0)
		req.ProducerIDFilters = producers
		answer, err = b.ListTransactions(req)
		return err
	}); err != nil {
		return nil, err
	}
	if answer.ErrorCode != sarama.ErrNoError {
		return nil, fmt.Errorf("broker %s: %w", addr, kerror(answer.ErrorCode))
	}
	return answer.TransactionStates, nil
}
