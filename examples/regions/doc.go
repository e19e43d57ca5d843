// Command regions keeps the population of regions while people move, grow
// older and die: an aggregation of a table, which takes a row out of its old
// region before it puts it into the new one.
package main
