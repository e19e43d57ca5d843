// Command loginguard locks accounts after three failed logins within ten minutes.
// It is here for its test, which shows what the tester can do: several
// instances, the time of records, crashes, failing calls, a cluster that is
// slow. All of it runs in milliseconds, without a broker.
package main
