// Package reka holds the words that everything else shares: Stream and Table
// declare a topic with the codec of its values, GroupTable the table that a
// group of processors keeps, and Run runs several parts of a service until a
// context ends.
//
// The doors are in packages of their own: emitter writes events, processor
// runs callbacks per key over a table that survives crashes, stream makes the
// same of operations over streams, tables and windows (package window), view
// replicates a table for lookups, and tester runs all of them in a test without
// a broker.
package reka
