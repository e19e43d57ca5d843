// Command benchmarks compares Reka with the least that the same work can cost
// on a real Kafka: loops over sarama's low-level requests that do nothing
// else, and loops over franz-go. It prints one table.
//
//	go run .                    everything, at most 12 minutes
//	go run . -short             smaller and fewer runs, at most 2 minutes
//	go run . -heap              the heap over eight minutes of load
//	go run . -parts pass,get    these parts only
//	go run . -brokers host:9092 on a cluster that runs already
//
// Contestants of a part run in turn, so that what slows the machine down for a
// while hits all of them, and every ratio is the median over the turns. A run
// of Reka ends when all that it caused is durable: outputs and changelog
// acknowledged and the offsets behind them committed. Joining the group counts
// too.
package main
