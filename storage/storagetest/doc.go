// Package storagetest is the conformance suite of package storage: what every
// Builder must do, and a random test against a model.
package storagetest
