// Command orders adds to each order what is known of its customer and its
// product: the customers are a table that is partitioned like the orders, the
// products a global table, of which every process has all rows.
package main
