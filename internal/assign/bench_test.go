package assign

import "testing"

// BenchmarkPlan plans a settled group of 50 members and 50,000 tasks.
func BenchmarkPlan(b *testing.B) {
	group, counts := groupOf(50, 1, 1000)
	members := MembersOf(group)
	b.ReportAllocs()
	for b.Loop() {
		r, err := Plan(Input{Members: members, Partitions: counts})
		if err != nil || r.Again {
			b.Fatal(err)
		}
	}
}
