// Command clickpurchase finds out which clicks on advertisements led to a
// purchase within half an hour, and which to none.
package main
