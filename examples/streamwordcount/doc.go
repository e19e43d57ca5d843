// Command streamwordcount counts words with operations of package stream:
// split, group, count. It is what the wordcount example does with two
// processors, in one graph of two parts.
package main
