// Command deadletters shows what can become of records that fail. It books
// payments:
//
//   - bytes that are no payment go to the dead-letter topic (Decode policy);
//   - a payment that the bank cannot take just now is tried again, three
//     times, and then goes there too (Process policy);
//   - a payment of nothing is skipped and counted: the callback says so
//     itself, by AsSkip;
//   - a panic is an error like any other.
//
// Whatever happens, a failed record leaves no trace in the table.
package main
