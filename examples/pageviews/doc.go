// Command pageviews counts page views per region in windows of five minutes.
// A count is written once, when its window is closed, and is final: views that
// come later go to a topic of their own. HTTP requests are answered from a view
// of the counts.
package main
