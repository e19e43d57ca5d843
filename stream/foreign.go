package stream

import (
	"encoding/binary"
	"errors"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/internal/graph"
	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/processor"
)

// JoinForeign joins each row of the left table with the right one that it
// refers to: foreignKey returns that one's key, false if it refers to none.
// The result has the left row's key, and follows changes of both; its time is
// the later one of the change and of the other side's row.
//
// The tables may have different numbers of partitions. The left rows' wishes
// and the right side's answers go through repartition topics. The results are
// kept in a store (Named), and need a codec (WithCodec).
func JoinForeign[L, R, V any](l Table[L], r Table[R], foreignKey func(key string, v L) (string, bool), fn func(key string, l L, r R) V, opts ...Option) Table[V] {
	j := &foreignJoin[L, R, V]{l: l, r: r, foreignKey: foreignKey}
	if fn != nil {
		j.fn = func(key string, l L, r *R) V { return fn(key, l, *r) }
	}
	return j.declare("joinforeign", opts)
}

// LeftJoinForeign is JoinForeign with a row for every row of the left table;
// the right one is nil if there is none.
func LeftJoinForeign[L, R, V any](l Table[L], r Table[R], foreignKey func(key string, v L) (string, bool), fn func(key string, l L, r *R) V, opts ...Option) Table[V] {
	j := &foreignJoin[L, R, V]{l: l, r: r, foreignKey: foreignKey, fn: fn, left: true}
	return j.declare("leftjoinforeign", opts)
}

// foreignJoin is a join by foreign key. It has three parts:
//
//	left: a row's change ends the old subscription, and makes a new one
//	right: keeps subscriptions, and answers each, and again when its row changes
//	left: takes the answer that it waits for
//
// A subscription has a number that no other one of its left row ever had. An
// answer to an older one is dropped: there is a newer one under way.
type foreignJoin[L, R, V any] struct {
	l          Table[L]
	r          Table[R]
	foreignKey func(key string, v L) (string, bool)
	fn         func(key string, l L, r *R) V
	left       bool

	out  Table[V]
	keep *rows[V]
	subs *subscriptions // of left rows
	to   *output        // of wishes

	without, stale *counter
}

func (j *foreignJoin[L, R, V]) declare(op string, opts []Option) Table[V] {
	asks := j.l.b().node(op, j.l.n)
	b := asks.b
	o := fold(opts)
	c := codecOf[V](asks, &o, nil)
	name := asks.own(o.name)
	j.out = newTable(asks, c)
	switch {
	case j.foreignKey == nil || j.fn == nil:
		b.failf(asks, "no function")
		return j.out
	case j.r.n == nil || j.r.n.b != b:
		b.failf(asks, "its right table is of another builder, or was not made by one")
		return j.out
	case o.partitions != 0:
		b.failf(asks, "Partitions: its topics have as many as the tables")
		return j.out
	case !needCodec(asks, c) || !needCodec(asks, j.r.codec):
		return j.out
	}
	j.l.needChanges(asks)
	j.r.needChanges(asks)

	j.to = asks.output(b.repartition(name + "-wishes"))
	wished := j.source(asks, name+"-wishes")
	answers := b.node("answers", j.r.n, wished)
	answers.name, answers.base = b.claim(answers, name+"-subscribers"), name
	j.answer(answers, wished)

	answered := j.source(answers, name+"-answers")
	takes := b.node(op, asks, answered)
	takes.name, takes.base = name, name
	j.out.n = takes
	j.keep = stored(takes.store(""), c)
	j.out.get = j.keep.get
	j.subs = &subscriptions{takes.store("-subscriptions")}
	j.without, j.stale = takes.counter("rows without a foreign key"), takes.counter("stale answers")
	j.take(answered)
	j.l.add(j.ask)
	return j.out
}

// source is what reads a topic between the two sides.
func (j *foreignJoin[L, R, V]) source(from *node, name string) *node {
	src := repartitioned(from, 0)
	src.base, src.name = name, name
	src.input = &input{spec: graph.Input{Topic: from.b.repartition(name), Repartition: &graph.Repartition{}}}
	return src
}

// ask follows a change of a left row.
func (j *foreignJoin[L, R, V]) ask(x *exec, e change[L]) {
	was, ok := j.subs.get(x, e.key)
	var to string
	var refers bool
	if e.hasNew {
		if to, refers = j.foreignKey(x.key(e.key), e.new); !refers {
			x.count(j.without)
		}
	}
	if ok && !(refers && to == was.to) {
		j.wish(x, &e, wish{from: was.to, end: true})
	}
	if refers {
		is := subscription{number: was.number + 1, to: to}
		switch {
		case !ok:
			is.number = j.subs.last(x) + 1
		case to == was.to:
			is.rightTime = was.rightTime
		}
		j.subs.set(x, e.key, is)
		j.wish(x, &e, wish{from: to, number: is.number})
		return // the result follows the answer
	}
	if ok {
		j.subs.end(x, e.key, was)
	}
	ch := change[V]{key: e.key, time: e.time}
	if e.hasNew && j.left {
		ch.new, ch.hasNew = j.fn(x.key(e.key), e.new, nil), true
	} else {
		ch.time = max(ch.time, was.rightTime)
	}
	j.out.changed(x, ch, j.keep)
}

// wish is what a left row asks of a right one: answers, or no more.
type wish struct {
	from   string
	number uint64
	end    bool
}

const (
	wishEnd     = 0
	wishAnswers = 1
)

// wish writes: what it is, the number, the left row's key.
func (j *foreignJoin[L, R, V]) wish(x *exec, e *change[L], w wish) {
	kind := byte(wishAnswers)
	if w.end {
		kind = wishEnd
	}
	x.wireBuf = binary.AppendUvarint(append(x.wireBuf[:0], kind), w.number)
	x.wireBuf = append(x.wireBuf, e.key...)
	x.rec.Emit(j.to.index, task.Emission{Key: bytesOf(w.from), Value: x.wireBuf, Time: e.time, Partition: -1})
}

var (
	errWish   = errors.New("not a subscription of a join by foreign key")
	errAnswer = errors.New("not an answer of a join by foreign key")
)

// answer is the right side.
func (j *foreignJoin[L, R, V]) answer(n, wished *node) {
	subs := &subscribers{n.store("")}
	to := &answerTopic[R]{n.output(n.b.repartition(j.out.n.name + "-answers")), j.r.codec}
	wished.input.run = func(ctx *processor.Context) error {
		x := execIn(ctx)
		rec := x.rec.Source()
		if len(rec.Value) < 2 {
			return &task.DecodeError{Err: errWish}
		}
		number, size := binary.Uvarint(rec.Value[1:])
		if size <= 0 {
			return &task.DecodeError{Err: errWish}
		}
		left := rec.Value[1+size:]
		if rec.Value[0] == wishEnd {
			subs.end(x, rec.Key, left)
			return nil
		}
		subs.set(x, subscriber{to: rec.Key, left: left, number: number})
		r, at, ok := j.r.get(x, rec.Key)
		if to.begin(x, optional(&r, ok), at) {
			to.write(x, task.Emission{Key: left, Time: x.rec.Time()}, number)
		}
		return nil
	}
	j.r.add(func(x *exec, e change[R]) {
		if !to.begin(x, optional(&e.new, e.hasNew), e.time) {
			return
		}
		for s := range subs.of(x, e.key) {
			to.write(x, task.Emission{Key: s.left, Time: e.time}, s.number)
		}
	})
}

// answerTopic writes answers: the number of the subscription, 1 and the time
// of the right row and its value, or 0 if there is none.
type answerTopic[R any] struct {
	out   *output
	codec codec.Codec[R]
}

const (
	answerNone = 0
	answerRow  = 1
)

// begin makes in x.wireBuf what all answers of a right row have in common.
func (a *answerTopic[R]) begin(x *exec, r *R, time int64) bool {
	if x.failed() {
		return false
	}
	if r == nil {
		x.wireBuf = append(x.wireBuf[:0], answerNone)
		return true
	}
	raw := encode(x, a.codec, *r)
	x.wireBuf = append(binary.AppendUvarint(append(x.wireBuf[:0], answerRow), uint64(time)), raw...)
	return raw != nil
}

func (a *answerTopic[R]) write(x *exec, e task.Emission, number uint64) {
	x.valueBuf = append(binary.AppendUvarint(x.valueBuf[:0], number), x.wireBuf...)
	e.Value, e.Partition = x.valueBuf, -1
	x.rec.Emit(a.out.index, e)
}

// take is the left side's end.
func (j *foreignJoin[L, R, V]) take(answered *node) {
	c := j.r.codec
	answered.input.decode = func(b []byte) error { _, err := decodeAnswer(c, b); return err }
	answered.input.run = func(ctx *processor.Context) error {
		x := execIn(ctx)
		key := x.rec.Source().Key
		a, err := decodeAnswer(c, x.rec.Source().Value)
		if err != nil {
			return &task.DecodeError{Err: err}
		}
		sub, ok := j.subs.get(x, key)
		if !ok || sub.number != a.number {
			x.count(j.stale)
			return nil
		}
		l, lt, ok := j.l.get(x, key)
		if !ok {
			x.count(j.stale)
			return nil
		}
		if sub.rightTime != a.time {
			sub.rightTime = a.time
			j.subs.set(x, key, sub)
		}
		ch := change[V]{key: key, time: max(x.rec.Time(), lt, a.time)}
		if a.ok || j.left {
			ch.new, ch.hasNew = j.fn(x.key(key), l, optional(&a.value, a.ok)), true
		}
		j.out.changed(x, ch, j.keep)
		return nil
	}
}

// answer is what the right side has said.
type answer[R any] struct {
	number uint64
	value  R
	ok     bool
	time   int64 // of the right row; 0: there is none
}

func decodeAnswer[R any](c codec.Codec[R], b []byte) (a answer[R], err error) {
	number, size := binary.Uvarint(b)
	if size <= 0 || len(b) == size {
		return a, errAnswer
	}
	a.number, a.ok = number, b[size] == answerRow
	if b = b[size+1:]; !a.ok {
		return a, nil
	}
	time, size := binary.Uvarint(b)
	if size <= 0 {
		return a, errAnswer
	}
	a.time = int64(time)
	a.value, err = c.Decode(b[size:])
	return a, err
}
