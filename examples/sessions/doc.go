// Command sessions gathers the clicks of each user into visits: clicks with no
// more than half an hour between them. It keeps a table of visits that follows
// every click, and writes a summary of each visit when it has ended.
package main
