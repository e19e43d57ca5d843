// Command wordcount chains two processors: the first one splits lines into
// words, each under its own key, the second one counts them.
package main
