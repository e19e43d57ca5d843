package stream_test

import (
	"strings"
	"time"

	"github.com/rekastream/reka/stream"
)

func ExampleFromTable() {
	demo(func(b *stream.Builder) {
		users := stream.FromTable(b, Users)
		stream.Changes(users).To(Out)
	},
		"users ann:fr@1", "users ann:it@2", "users ann:⊥@3", "users ann:⊥@4")
	// Output:
	// users ann:fr@1 → out ann:fr@1
	// users ann:it@2 → out ann:it@2
	// users ann:⊥@3  → out ann:⊥@3
	// users ann:⊥@4  → out ann:⊥@4
}

func ExampleFlow_ToTable() {
	demo(func(b *stream.Builder) {
		last := stream.From(b, Clicks).ToTable(stream.Named("last-page"))
		last.To(Out)
	},
		"clicks ann:/home@1", "clicks ann:/shop@2", "clicks ann:⊥@3", "clicks bob:⊥@4")
	// Output:
	// clicks ann:/home@1 → out ann:/home@1
	// clicks ann:/shop@2 → out ann:/shop@2
	// clicks ann:⊥@3     → out ann:⊥@3
	// clicks bob:⊥@4     → –
}

func ExampleTable_Filter() {
	demo(func(b *stream.Builder) {
		limits := stream.FromTable(b, Limits)
		limits.Filter(func(_ string, limit int64) bool { return limit >= 100 }).To(Sums)
	},
		"limits ann:50@1", "limits ann:100@2", "limits ann:200@3", "limits ann:80@4", "limits ann:⊥@5")
	// Output:
	// limits ann:50@1  → –
	// limits ann:100@2 → sums ann:100@2
	// limits ann:200@3 → sums ann:200@3
	// limits ann:80@4  → sums ann:⊥@4
	// limits ann:⊥@5   → –
}

func ExampleTable_FilterNot() {
	demo(func(b *stream.Builder) {
		users := stream.FromTable(b, Users)
		users.FilterNot(func(_, country string) bool { return country == "fr" }, stream.Named("abroad")).To(Out)
	},
		"users ann:it@1", "users ann:fr@2")
	// Output:
	// users ann:it@1 → out ann:it@1
	// users ann:fr@2 → out ann:⊥@2
}

func ExampleMapTable() {
	demo(func(b *stream.Builder) {
		users := stream.FromTable(b, Users)
		stream.MapTable(users, func(_, country string) string { return strings.ToUpper(country) }, texts()).To(Out)
	},
		"users ann:fr@1", "users ann:FR@2", "users ann:⊥@3")
	// Output:
	// users ann:fr@1 → out ann:FR@1
	// users ann:FR@2 → –
	// users ann:⊥@3  → out ann:⊥@3
}

func ExampleChanges() {
	demo(func(b *stream.Builder) {
		users := stream.FromTable(b, Users)
		moves := stream.Changes(users).SelectKey(func(_, country string) string { return country })
		moves.GroupByKey().Count().To(Sums)
	},
		"users ann:fr@1", "users bob:fr@2", "users ann:⊥@3")
	// Output:
	// users ann:fr@1 → sums fr:1@1
	// users bob:fr@2 → sums fr:2@2
	// users ann:⊥@3  → –
}

func ExampleTable_Suppress() {
	demo(func(b *stream.Builder) {
		payments := stream.From(b, Payments)
		total := payments.GroupByKey().Reduce(func(a, b int64) int64 { return a + b })
		total.Suppress(stream.UntilElapsed(10*time.Second), stream.Named("calm")).To(Sums)
	},
		"payments ann:1@0", "payments ann:1@4", "payments bob:1@9", "payments ann:1@10", "payments bob:1@30")
	// Output:
	// payments ann:1@0  → –
	// payments ann:1@4  → –
	// payments bob:1@9  → –
	// payments ann:1@10 → sums ann:3@10
	// payments bob:1@30 → sums bob:2@30
}

func ExampleUntilFull() {
	demo(func(b *stream.Builder) {
		payments := stream.From(b, Payments)
		total := payments.GroupByKey().Reduce(func(a, b int64) int64 { return a + b })
		total.Suppress(stream.UntilFull().MaxRecords(2)).To(Sums)
	},
		"payments ann:1@0", "payments bob:1@1", "payments ann:1@2", "payments cid:1@3", "payments dan:1@4")
	// Output:
	// payments ann:1@0 → –
	// payments bob:1@1 → –
	// payments ann:1@2 → –
	// payments cid:1@3 → sums ann:2@2
	// payments dan:1@4 → sums bob:1@1
}
