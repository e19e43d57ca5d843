package kafka_test

import (
	"bufio"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/rekastream/reka/kafka"
)

func TestPartitionersPlaceKnownKeys(t *testing.T) {
	tests := []struct {
		key            string
		murmur2, fnv1a int32 // of 10
	}{
		{"user-1", 8, 6},
		{"alice", 9, 7},
		{"bob", 8, 2},
		{"key-0", 1, 7},
		{"42", 2, 5},
	}
	for _, tt := range tests {
		if got := kafka.Murmur2().Partition([]byte(tt.key), 10); got != tt.murmur2 {
			t.Errorf("murmur2 of %q: partition %d, want %d", tt.key, got, tt.murmur2)
		}
		if got := kafka.FNV1a().Partition([]byte(tt.key), 10); got != tt.fnv1a {
			t.Errorf("fnv1a of %q: partition %d, want %d", tt.key, got, tt.fnv1a)
		}
	}
}

// TestMurmur2PlacesKeysAsJava compares with what the Java client answered.
func TestMurmur2PlacesKeysAsJava(t *testing.T) {
	for _, v := range javaVectors(t) {
		for n, want := range v.partition {
			if got := kafka.Murmur2().Partition(v.key, n); got != want {
				t.Errorf("key %x: partition %d of %d, want %d", v.key, got, n, want)
			}
		}
		// 2^31-1 partitions show nearly the whole hash.
		const all = 1<<31 - 1
		if got, want := kafka.Murmur2().Partition(v.key, all), v.hash&all%all; got != want {
			t.Errorf("key %x: hash %d, want %d", v.key, got, want)
		}
	}
}

func TestPartitionersAgreeWithSarama(t *testing.T) {
	pairs := []struct {
		ours   kafka.Partitioner
		theirs sarama.PartitionerConstructor
	}{
		{kafka.FNV1a(), sarama.NewHashPartitioner},
		{kafka.Murmur2(), sarama.NewMurmur2Partitioner},
	}
	for _, pair := range pairs {
		theirs := pair.theirs("topic")
		for _, v := range javaVectors(t) {
			for _, n := range []int32{1, 2, 3, 7, 10, 64, 1000, 1<<31 - 1} {
				want, err := theirs.Partition(&sarama.ProducerMessage{Key: sarama.ByteEncoder(v.key)}, n)
				if err != nil {
					t.Fatal(err)
				}
				if got := pair.ours.Partition(v.key, n); got != want {
					t.Errorf("%s of %x: partition %d of %d, sarama says %d", pair.ours, v.key, got, n, want)
				}
			}
		}
	}
}

func TestPartitionerNames(t *testing.T) {
	if got := kafka.Murmur2().String(); got != "murmur2" {
		t.Errorf("name %q", got)
	}
	if got := kafka.FNV1a().String(); got != "fnv1a" {
		t.Errorf("name %q", got)
	}
}

func TestPartitionAllocatesNothing(t *testing.T) {
	key := []byte("some-user-key")
	for _, p := range []kafka.Partitioner{kafka.Murmur2(), kafka.FNV1a()} {
		if n := testing.AllocsPerRun(100, func() { p.Partition(key, 12) }); n != 0 {
			t.Errorf("%s: %v allocations a call", p, n)
		}
	}
}

func BenchmarkPartition(b *testing.B) {
	key := []byte("user-1234567")
	for _, p := range []kafka.Partitioner{kafka.Murmur2(), kafka.FNV1a()} {
		b.Run(p.String(), func(b *testing.B) {
			for b.Loop() {
				p.Partition(key, 12)
			}
		})
	}
}

type javaVector struct {
	key       []byte
	hash      int32
	partition map[int32]int32 // by number of partitions
}

func javaVectors(t *testing.T) []javaVector {
	t.Helper()
	f, err := os.Open("testdata/murmur2.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var vs []javaVector
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		cols := strings.Split(sc.Text(), "\t")
		key, err := hex.DecodeString(cols[0][1:])
		if err != nil {
			t.Fatal(err)
		}
		var num [4]int32
		for i := range num {
			n, err := strconv.ParseInt(cols[i+1], 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			num[i] = int32(n)
		}
		vs = append(vs, javaVector{key, num[0], map[int32]int32{3: num[1], 10: num[2], 1000: num[3]}})
	}
	if len(vs) < 100 {
		t.Fatalf("only %d vectors", len(vs))
	}
	return vs
}
