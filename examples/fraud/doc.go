// Command fraud raises an alert when three payments by a card were declined
// within ten minutes, once, and forgets a card that was quiet for an hour. It
// uses package processor: a row per card, and a durable timer that deletes it.
package main
