package storage

import (
	"bytes"
	"testing"
	"time"
)

// FuzzCheckpoint reads anything without a panic, and writes what it read as
// it was.
func FuzzCheckpoint(f *testing.F) {
	for _, c := range []Checkpoint{
		{},
		{Position: -1, LeaderEpoch: -1, TopicID: [16]byte{1}, AtEnd: time.UnixMilli(1), Owner: []byte("x")},
	} {
		b, err := c.AppendBinary([]byte("before"))
		if err != nil || !bytes.HasPrefix(b, []byte("before")) {
			f.Fatalf("%q %v", b, err)
		}
		f.Add(b[len("before"):])
	}
	f.Add([]byte{checkpointVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Checkpoint
		if c.UnmarshalBinary(b) != nil {
			return
		}
		again, err := c.AppendBinary(nil)
		var d Checkpoint
		if err != nil || d.UnmarshalBinary(again) != nil || !d.AtEnd.Equal(c.AtEnd) || !bytes.Equal(d.Owner, c.Owner) ||
			d.Position != c.Position || d.LeaderEpoch != c.LeaderEpoch || d.TopicID != c.TopicID {
			t.Fatalf("%x became %x: %v", b, again, err)
		}
	})
}

func TestCheckpointComesBack(t *testing.T) {
	want := Checkpoint{Position: 1 << 50, LeaderEpoch: -1, TopicID: [16]byte{15: 9}, AtEnd: time.UnixMilli(-5).UTC(), Owner: []byte{0}}
	b, _ := want.AppendBinary(nil)
	var got Checkpoint
	if err := got.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if got.Position != want.Position || got.LeaderEpoch != -1 || got.TopicID != want.TopicID || got.AtEnd != want.AtEnd || !bytes.Equal(got.Owner, want.Owner) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	b[0]++
	if got.UnmarshalBinary(b) == nil || got.UnmarshalBinary(b[:10]) == nil {
		t.Fatal("read what it cannot know")
	}
}
