// Command foreignkey keeps a directory of employees with the name and floor of
// their departments: a join of two tables by a key that is in the value of the
// left one. It follows the changes of both.
package main
