// Command dualview reads one topic twice: as a stream, in which every record is
// a fact, and as a table, in which a record replaces the one before it. The
// same operation, count by state, says two things: how often a state was
// entered, and how many machines are in it.
package main
