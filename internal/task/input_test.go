package task

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rekastream/reka/kafka"
)

// arrive makes a batch of records with these timestamps.
func arrive(in *input, lastStable int64, times ...int64) {
	b := kafka.Batch{TopicPartition: in.TopicPartition, LastStable: lastStable, Position: in.fetched}
	for _, ms := range times {
		b.Records = append(b.Records, kafka.Record{Offset: b.Position, Timestamp: ms})
		b.Position++
	}
	in.push(kafka.NewBatch(b, nil))
}

func newInputs(n int) []*input {
	out := make([]*input, n)
	for i := range out {
		out[i] = &input{rank: i, lastStable: -1, join: -1, slot: i}
	}
	return out
}

// drain takes records as a task does, and returns (rank, timestamp) pairs.
func drain(inputs []*input) (out [][2]int64) {
	for {
		in, limit, inclusive := pick(inputs)
		if in == nil {
			return out
		}
		for r := in.head(); r != nil && (r.Timestamp < limit || inclusive && r.Timestamp == limit); r = in.head() {
			out = append(out, [2]int64{int64(in.rank), r.Timestamp})
			in.next()
		}
	}
}

func TestMergeTakesLowestTimestampAndOnTiesLowestRank(t *testing.T) {
	in := newInputs(2)
	arrive(in[0], 3, 100, 300, 300)
	arrive(in[1], 4, 50, 100, 300, 400)
	want := [][2]int64{{1, 50}, {0, 100}, {1, 100}, {0, 300}, {0, 300}, {1, 300}, {1, 400}}
	if got := drain(in); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMergeKeepsOrderWithinAPartitionWhateverTheTimestamps(t *testing.T) {
	in := newInputs(2)
	arrive(in[0], 3, 300, 100, 200)
	arrive(in[1], 1, 250)
	want := [][2]int64{{1, 250}, {0, 300}, {0, 100}, {0, 200}}
	if got := drain(in); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMergeWaitsForAnEmptyInputOnlyWhileItLagsAndNeverForALoop(t *testing.T) {
	in := newInputs(2)
	arrive(in[0], 1, 10)
	if got := drain(in); got != nil {
		t.Errorf("an input that was never heard of was not waited for: %v", got)
	}
	arrive(in[1], 5) // behind: records up to 5 exist
	if got := drain(in); got != nil {
		t.Errorf("a lagging input was not waited for: %v", got)
	}
	in[1].loop = true
	if got := drain(in); len(got) != 1 {
		t.Errorf("a loop was waited for: %v", got)
	}
	in[1].loop, in[1].fetched = false, 5
	arrive(in[0], 2, 20)
	if got := drain(in); len(got) != 1 {
		t.Errorf("an input at its end was waited for: %v", got)
	}
}

func TestMergeOfRandomInputsEqualsTheNaiveOne(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := newInputs(1 + r.IntN(4))
		queues := make([][]int64, len(in))
		for i := range in {
			for range r.IntN(8) {
				queues[i] = append(queues[i], int64(r.IntN(6)))
			}
			arrive(in[i], int64(len(queues[i])), queues[i]...)
		}
		var want [][2]int64
		for {
			best := -1
			for i, q := range queues {
				if len(q) > 0 && (best < 0 || q[0] < queues[best][0]) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			want = append(want, [2]int64{int64(best), queues[best][0]})
			queues[best] = queues[best][1:]
		}
		if got := drain(in); !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}

func TestPositionMovesOverWhatWasLeftOut(t *testing.T) {
	in := newInputs(1)[0]
	in.push(kafka.NewBatch(kafka.Batch{Position: 7, LastStable: 9}, nil))
	if in.position != 7 || !in.lagging() {
		t.Errorf("position %d, lagging %v, want 7 and lagging", in.position, in.lagging())
	}
	in.push(kafka.NewBatch(kafka.Batch{Position: 9, LastStable: 9, Records: []kafka.Record{{Offset: 7}}}, nil))
	in.next()
	if in.position != 9 || in.lagging() {
		t.Errorf("position %d, lagging %v, want 9 and not lagging", in.position, in.lagging())
	}
}

func TestEveryBatchIsReleasedOnce(t *testing.T) {
	in := newInputs(1)[0]
	released := 0
	push := func(n int) {
		b := kafka.Batch{Position: in.fetched + int64(n)}
		for i := range n {
			b.Records = append(b.Records, kafka.Record{Offset: in.fetched + int64(i)})
		}
		in.push(kafka.NewBatch(b, func() { released++ }))
	}
	push(2)
	push(0)
	push(1)
	in.next()
	if released != 0 {
		t.Errorf("%d released before they were finished", released)
	}
	in.next()
	if released != 2 {
		t.Errorf("%d released, want the finished and the empty one", released)
	}
	in.drop()
	if released != 3 || in.head() != nil {
		t.Errorf("%d released after drop, want 3", released)
	}
}
