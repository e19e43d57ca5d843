// Command tablejoin joins a stream of orders with a table of customers, keeps
// a bill for each customer, and answers HTTP requests from a view of the
// bills.
//
// The join is merged by time: an order sees its customer as of its own
// timestamp, so the same records give the same bills on every run.
package main
