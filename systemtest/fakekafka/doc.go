// Package fakekafka runs a fake Kafka cluster inside the test binary: real
// connections and the real protocol, no Java. Its data lies in a directory,
// so that it can be stopped and started again on the same ports, as in an
// outage.
//
// What it does differently from real brokers is listed in Lacks.
package fakekafka
