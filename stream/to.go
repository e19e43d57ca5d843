package stream

import (
	"fmt"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
)

// To writes the records to a topic, with their keys and times. A record
// without a value is written as one: it deletes, if the topic is a table.
func (f Flow[T]) To(t reka.Topic[T]) {
	n := f.b().node("to", f.n)
	if t == nil || t.Name() == "" || t.Codec() == nil {
		f.b().failf(n, "a topic without a name or a codec (declare it with NewStream or NewTable)")
		return
	}
	n.details = append(n.details, t.Name())
	f.add(toTopic(n, t.Name(), t.Codec()))
}

// ToBy writes each record to one of several topics: the one whose name choose
// returns. A name that is not among them fails the record; an empty one drops
// it.
func (f Flow[T]) ToBy(choose func(key string, v T) string, topics ...reka.Topic[T]) {
	n := f.b().node("to", f.n)
	if choose == nil || len(topics) == 0 {
		f.b().failf(n, "no function, or no topics")
		return
	}
	writers := map[string]sink[event[T]]{}
	for _, t := range topics {
		if t == nil || t.Name() == "" || t.Codec() == nil {
			f.b().failf(n, "a topic without a name or a codec (declare it with NewStream or NewTable)")
			return
		}
		n.details = append(n.details, t.Name())
		writers[t.Name()] = toTopic(n, t.Name(), t.Codec())
	}
	f.addValued(n, func(x *exec, e event[T]) {
		name := choose(x.key(e.key), e.value)
		if name == "" {
			return
		}
		write := writers[name]
		if write == nil {
			x.fail(fmt.Errorf("%w: topic %q is not among those that were given to ToBy", kafka.ErrUnknownTopic, name))
			return
		}
		write(x, e)
	})
}
