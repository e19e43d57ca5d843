package badgerstore

import (
	"crypto/sha256"
	"encoding/binary"
)

// A key in Badger: table number (4 bytes), partition (4), kind (1), and the
// rest by kind. Table number 0 holds the names. No name and no record key can
// reach outside its prefix, and none begins with what Badger reserves: that
// would be table number 0x21626164.
const (
	kindCheckpoint = 0 // nothing more
	kindRow        = 1 // record key; see maxKey for long ones
	kindChunk      = 2 // version, sequence, index: a piece of a value
	kindBig        = 3 // version, sequence: says which row the pieces are of

	prefixSize = 9
	maxTable   = 1<<32 - 1
)

// maxKey is the longest record key that is a key in Badger, whose own limit
// is 65,000 bytes. Of a longer one the first maxKey bytes are, followed by a
// hash and a slot that tells keys with the same hash apart; the rest of the
// record key stands in front of the value.
const (
	maxKey   = 60_000
	hashSize = 16
	slotSize = 4
	longKey  = maxKey + hashSize + slotSize
)

// User bytes of rows.
const (
	metaLong byte = 1 << iota // the value begins with the rest of the key
	metaBig                   // the value is cut in pieces
)

// place is the prefix of all that belongs to one partition of a table.
type place [8]byte

func placeOf(number uint32, partition int32) place {
	var p place
	binary.BigEndian.PutUint32(p[:], number)
	binary.BigEndian.PutUint32(p[4:], uint32(partition)^1<<31)
	return p
}

func partitionOf(key []byte) int32 {
	return int32(binary.BigEndian.Uint32(key[4:]) ^ 1<<31)
}

// key appends a key of the given kind to dst.
func (p place) key(dst []byte, kind byte, rest []byte) []byte {
	dst = append(dst, p[:]...)
	dst = append(dst, kind)
	return append(dst, rest...)
}

// bigID names a value that is cut in pieces: the version of the write and a
// sequence in it. It is never used twice.
type bigID struct {
	version uint64
	seq     uint32
}

const bigIDSize = 12

func (id bigID) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, id.version)
	return binary.BigEndian.AppendUint32(dst, id.seq)
}

func parseBigID(b []byte) bigID {
	return bigID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}
}

// chunk returns the key of piece i of a value.
func (p place) chunk(id bigID, i uint32) []byte {
	return binary.BigEndian.AppendUint32(id.append(p.key(nil, kindChunk, nil)), i)
}

// big returns the key of a value's entry in the list of big values.
func (p place) big(id bigID) []byte { return id.append(p.key(nil, kindBig, nil)) }

// nameKey returns the key of a name's number.
func nameKey(name string) []byte { return append(make([]byte, 4), name...) }

func hashKey(key []byte) [hashSize]byte {
	sum := sha256.Sum256(key)
	return [hashSize]byte(sum[:])
}
