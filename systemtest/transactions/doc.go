// Package transactions holds the tests of kafka.Transactor over sarama, on
// real Kafka and on the fake cluster: with each code that a broker may
// answer, with answers that are lost and requests that come late, and with
// coordinators and leaders that move.
package transactions
