package stream

import (
	"runtime/debug"
	"unsafe"

	"github.com/rekastream/reka/internal/task"
	"github.com/rekastream/reka/processor"
)

// event is one record on its way through the operations.
//
// The key is valid until the handler of the record returns, and is not
// changed: what keeps it copies it.
type event[T any] struct {
	key   []byte // nil: no key
	value T
	null  bool  // no value
	time  int64 // milliseconds
}

// change is what happened to a row of a table.
type change[T any] struct {
	key            []byte
	old, new       T
	hasOld, hasNew bool
	time           int64 // of the record that brought it, milliseconds
}

// sink takes what an operation hands on.
type sink[E any] func(x *exec, e E)

// port is where an operation hands its results on: to the operations behind
// it, in order of declaration.
type port[E any] struct{ sinks []sink[E] }

func (p *port[E]) add(s sink[E]) { p.sinks = append(p.sinks, s) }

// addFirst puts s before all others: what keeps rows must know them first.
func (p *port[E]) addFirst(s sink[E]) { p.sinks = append([]sink[E]{s}, p.sinks...) }

func (p *port[E]) emit(x *exec, e E) {
	for _, s := range p.sinks {
		s(x, e)
	}
}

// exec is what operations need of the task that they run in: its record, and
// scratch memory. One a task; operations are shared by all tasks and keep
// nothing of their own.
type exec struct {
	ctx *processor.Context
	rec *task.Record

	keyBuf, valueBuf []byte // never handed on
	endBuf, wireBuf  []byte // likewise
	listBuf          []byte // of rows that are lists; likewise
	lastKey          string
	caches           map[*store]any // what operations keep that can be made again
}

// execOf returns the exec of a record's task.
func execOf(rec *task.Record) *exec {
	ctx, _ := rec.Attached.(*processor.Context) // set for every record of a task
	return execIn(ctx)
}

func execIn(ctx *processor.Context) *exec {
	local := ctx.Local()
	if x, ok := (*local).(*exec); ok {
		return x
	}
	x := &exec{ctx: ctx, rec: ctx.Record()}
	*local = x
	return x
}

// fail makes the record fail.
func (x *exec) fail(err error) { x.rec.Stick(err) }

// failed reports whether the record has failed: then nothing more is done.
func (x *exec) failed() bool { return x.rec.Err() != nil }

// key returns a key for a user's function. The one asked for last is kept, so
// that a chain of operations makes one string a record.
func (x *exec) key(b []byte) string {
	if string(b) != x.lastKey {
		x.lastKey = string(b)
	}
	return x.lastKey
}

// bytesOf returns the bytes of a key that a user's function made. They must
// not be changed.
func bytesOf(key string) []byte {
	if key == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(key), len(key)) //nolint:gosec // read only, and alive as long as the key
}

// release hands on a result that time has made due. There is no record that
// could fail with it: if the error policy lets failures go, it is counted,
// logged and left out, and what else is due goes on.
func release[E any](x *exec, to sink[E], e E) {
	mark := x.rec.Save()
	defer func() {
		if v := recover(); v != nil {
			x.fail(&task.PanicError{Value: v, Stack: debug.Stack()})
		}
		x.rec.Forgive(mark)
	}()
	to(x, e)
}
