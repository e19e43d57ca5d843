package reka

import "time"

// EmitOption changes one emitted record. Options are plain values: building
// one does not allocate.
type EmitOption struct {
	kind      emitKind
	at        time.Time
	name      string
	value     []byte
	partition int32
}

type emitKind int8

const (
	emitAt emitKind = iota + 1
	emitHeader
	emitPartition
	emitNullKey
)

// At sets the record's timestamp, to the millisecond. Default: in a
// processor the timestamp of the record being processed, else now.
func At(t time.Time) EmitOption { return EmitOption{kind: emitAt, at: t} }

// WithHeader adds a header. The value is not copied until the record is
// written, and must not change; nil is a null.
func WithHeader(name string, value []byte) EmitOption {
	return EmitOption{kind: emitHeader, name: name, value: value}
}

// ToPartition places the record, instead of the client's partitioner.
func ToPartition(p int32) EmitOption { return EmitOption{kind: emitPartition, partition: p} }

// NullKey writes a record without a key; the key given must be empty.
// Records without a key go to the partitions in turn.
func NullKey() EmitOption { return EmitOption{kind: emitNullKey} }

// Emission is what a list of options says. It is for Reka's own packages.
type Emission struct {
	Time      time.Time // zero: not set
	Partition int32     // -1: not set
	NullKey   bool
	Headers   []EmissionHeader
}

// EmissionHeader is one header of an Emission.
type EmissionHeader struct {
	Name  string
	Value []byte
}

// NewEmission folds options; the later one wins. Headers add up.
func NewEmission(opts []EmitOption) Emission {
	e := Emission{Partition: -1}
	for i := range opts {
		switch o := &opts[i]; o.kind {
		case emitAt:
			e.Time = o.at
		case emitHeader:
			e.Headers = append(e.Headers, EmissionHeader{o.name, o.value})
		case emitPartition:
			e.Partition = o.partition
		case emitNullKey:
			e.NullKey = true
		}
	}
	return e
}
