// Package differential feeds the same random records to Kafka Streams and to
// another implementation of its operators, and compares the results. What
// differs must follow from a rule, of which each is a function here; anything
// else is a bug, or a rule that is not written down yet.
//
// Kafka Streams runs in its TopologyTestDriver, in one Java process that
// serves many cases (testdata/Differential.java). It has no cache, no throttle
// by wall clock, and keeps windows far longer than their grace, since with
// less it loses final results when time jumps. Every input is processed to its
// end before the next one is sent, so the order of inputs is the order of
// processing; the other side has to do the same.
//
// # Topologies
//
// A topology is a line of name=value parts. It reads topic L, and R where it
// has two inputs, and writes its results as text:
//
//	op=count|reduce|aggregate [pre=filter|rekey|merge] [window=… grace=… emit=update|close|suppress] [post=recount]
//	    window=tumbling size= | hopping size= advance= | sliding size= | session gap=
//	op=join|joincount kind=inner|left|outer before= after= grace= [self=true]
//	op=tablejoin kind=inner|left|outer [versioned=left|right|both]
//	op=foreignjoin kind=inner|left
//	op=streamtable kind=inner|left [versioned=right [grace=]]
//	op=streamglobal kind=inner|left by=key|value
//	op=tableagg|tablecount [versioned=left]
//	op=tablefilter|tablemap|totable
//	op=suppresstime|suppresscount wait= [maxrecords=]
//	post=final behind windows, joins of streams and streamtable; post=regroup behind tables
//
// All times are milliseconds. An aggregate begins as "0" and adds "+v", and a
// table's takes back "-v"; sessions merge in the order of their starts, the
// first "0" standing for all. reduce joins values by "+". A join's result is
// "l|r", with ~ for a side that is not there. pre=filter drops values that
// begin with z, and null ones; pre=rekey drops null values and takes the
// value's first letter for key; pre=merge reads L and R as one stream.
// tablefilter drops rows that begin with z, tablemap and the two table
// aggregations use the first letter. A foreign key, and the key of by=value,
// is what follows the colon of a value; without colon it is null. suppresscount
// counts the stream per key first. recount and joincount count results per key
// in tumbling windows of 20 with a grace of 1000; post=final counts on close, and
// without grace. post=regroup aggregates rows by the first letter. These two are
// for the model only.
//
// A windowed key is written key@start/end, with the end as Kafka Streams gives
// it: exclusive for tumbling and hopping windows, inclusive for sliding ones
// and sessions.
//
// # The other side
//
// It is a Runner: it sends the inputs of a case one after the other, lets each
// settle, and gives every result the index of the input that it followed. A
// key or value of Null is a null one. Nothing is added at the end: a generated
// case ends with a record far in the future where results may be held. The
// tests' check compares a Runner with Kafka Streams by the rules, and their
// checkModel with a model, without Java and without rules: there even the step
// of a result has to agree.
//
// Reka is one: it runs all cases of a topology in one graph. With Trouble its
// process ends now and then, and everything has to be as without.
//
// The flags -differential.cases, -records, -seed and -only choose how much, and
// what, is run.
package differential
