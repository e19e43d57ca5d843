// Package kafka holds the Client that users hand to emitters, processors and
// views, the vocabulary of records, batches and errors, and the seam behind
// the client: Driver.
//
// The driver that NewClient makes uses sarama for connections (TLS, SASL),
// metadata and the encoding of requests, and drives fetch, produce and group
// requests itself.
//
// Positions are always the next offset to read, never the last one read.
package kafka
