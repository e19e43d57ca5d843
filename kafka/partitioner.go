package kafka

// Partitioner says which partition the record of a key belongs to. Everything
// that writes a topic and everything that looks a key up in it must agree on
// it, which is why it hangs on the Client.
//
// Partition is a pure function and may be called from any number of
// goroutines at once. It neither keeps nor changes key.
type Partitioner interface {
	// Partition returns the partition, from 0 to partitions-1, of the key.
	// The key is never nil: a record without a key is placed by whoever
	// writes it. partitions is above 0.
	Partition(key []byte, partitions int32) int32

	// String names the function in errors and logs. Partitioners of the same
	// name place every key alike.
	String() string
}

// Murmur2 places keys as the Java clients, librdkafka's murmur2_random and
// franz-go do.
func Murmur2() Partitioner { return murmur2Partitioner{} }

// FNV1a places keys as sarama's hash partitioner does, which is the default of
// sarama and of Goka.
func FNV1a() Partitioner { return fnv1aPartitioner{} }

type murmur2Partitioner struct{}

func (murmur2Partitioner) Partition(key []byte, partitions int32) int32 {
	return int32(murmur2(key)&0x7fffffff) % partitions // the mask is Java's toPositive, not an absolute value
}

func (murmur2Partitioner) String() string { return "murmur2" }

type fnv1aPartitioner struct{}

func (fnv1aPartitioner) Partition(key []byte, partitions int32) int32 {
	// The remainder is taken of the signed hash and its sign dropped after,
	// so that the lowest int32, which has no absolute value, is no exception.
	p := int32(fnv1a(key)) % partitions
	if p < 0 {
		return -p
	}
	return p
}

func (fnv1aPartitioner) String() string { return "fnv1a" }

// murmur2 is the 32-bit MurmurHash2 with the seed that Kafka's clients share.
func murmur2(b []byte) uint32 {
	const (
		seed = 0x9747b28c
		mul  = 0x5bd1e995
	)
	h := seed ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		k *= mul
		k ^= k >> 24
		h = h*mul ^ k*mul
	}
	if len(b) > 0 {
		for i := len(b) - 1; i >= 0; i-- {
			h ^= uint32(b[i]) << (8 * i)
		}
		h *= mul
	}
	h ^= h >> 13
	h *= mul
	return h ^ h>>15
}

// fnv1a is the 32-bit FNV-1a hash. It is written out because the one of
// hash/fnv allocates.
func fnv1a(b []byte) uint32 {
	const (
		offset = 2166136261
		prime  = 16777619
	)
	h := uint32(offset)
	for _, c := range b {
		h = (h ^ uint32(c)) * prime
	}
	return h
}
