// Package graph holds what a group declares, as data: which topics it reads,
// writes, joins and keeps, and what happens to a record that fails. Packages
// processor and stream build a Graph, the engine runs it, and its fingerprint
// tells members with different graphs apart.
//
// A Graph says nothing about code: callbacks are matched to inputs by index.
package graph
