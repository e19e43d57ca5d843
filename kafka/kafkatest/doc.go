// Package kafkatest is the conformance suite of kafka.Driver. Every driver
// passes it: the one over real connections, on a fake cluster and on real
// brokers, and the in-memory one of the tester.
//
// Each case says in its comment which rule of the contract it guards, so that
// a failure can be judged without reading the driver.
package kafkatest
