// Command earthquakes replays a week of reports of the USGS, in the order in
// which they were last revised, and keeps how many earthquakes each region had
// in every quarter of a day, and which was the strongest.
package main
