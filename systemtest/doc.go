// Package systemtest runs Reka on brokers: a fake cluster inside the test
// binary, and real Apache Kafka as child processes.
//
// Every scenario runs on both unless it says why not. Tests share one real
// node, so they use topic and group names that no other test has.
package systemtest
