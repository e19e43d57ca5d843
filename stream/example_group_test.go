package stream_test

import (
	"slices"
	"strings"

	"github.com/rekastream/reka/stream"
)

func ExampleFlow_GroupBy() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		byPage := clicks.GroupBy(func(_, page string) string { return page }, stream.Named("by-page"))
		byPage.Count().To(Sums)
	},
		"clicks ann:/home@1", "clicks bob:/home@2", "clicks bob:/help@3")
	// Output:
	// clicks ann:/home@1 → sums /home:1@1
	// clicks bob:/home@2 → sums /home:2@2
	// clicks bob:/help@3 → sums /help:1@3
}

func ExampleGrouped_Count() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		clicks.GroupByKey().Count(stream.Named("clicks-by-user")).To(Sums)
	},
		"clicks ann:/home@5", "clicks ann:/shop@3", "clicks bob:/home@4", "clicks ann:⊥@6")
	// Output:
	// clicks ann:/home@5 → sums ann:1@5
	// clicks ann:/shop@3 → sums ann:2@5
	// clicks bob:/home@4 → sums bob:1@4
	// clicks ann:⊥@6     → –
}

func ExampleGrouped_Reduce() {
	demo(func(b *stream.Builder) {
		payments := stream.From(b, Payments)
		payments.GroupByKey().Reduce(func(a, b int64) int64 { return max(a, b) }, stream.Named("largest")).To(Sums)
	},
		"payments ann:20@1", "payments ann:50@2", "payments ann:30@3")
	// Output:
	// payments ann:20@1 → sums ann:20@1
	// payments ann:50@2 → sums ann:50@2
	// payments ann:30@3 → sums ann:50@3
}

func ExampleAggregate() {
	demo(func(b *stream.Builder) {
		clicks := stream.From(b, Clicks)
		trail := stream.Aggregate(clicks.GroupByKey(), stream.Aggregator[string, string]{
			Add: func(_, page, trail string) string {
				return strings.TrimPrefix(trail+" "+page, " ")
			},
			Delete: func(_, trail string) bool { return strings.HasSuffix(trail, "/logout") },
		}, texts(), stream.Named("trails"))
		trail.To(Out)
	},
		"clicks ann:/home@1", "clicks ann:/shop@2", "clicks ann:/logout@3", "clicks ann:/home@4")
	// Output:
	// clicks ann:/home@1   → out ann:/home@1
	// clicks ann:/shop@2   → out ann:/home /shop@2
	// clicks ann:/logout@3 → out ann:⊥@3
	// clicks ann:/home@4   → out ann:/home@4
}

func ExampleCogroup() {
	demo(func(b *stream.Builder) {
		clicks, payments := stream.From(b, Clicks), stream.From(b, Payments)
		score := stream.Cogroup(
			stream.Add(clicks.GroupByKey(), func(_, _ string, score int64) int64 { return score + 1 }),
			stream.Add(payments.GroupByKey(), func(_ string, amount, score int64) int64 { return score + 10*amount }),
		).Aggregate(nil, stream.WithCodec(Sums.Codec()), stream.Named("scores"))
		score.To(Sums)
	},
		"clicks ann:/home@1", "payments ann:3@2", "clicks ann:/help@3")
	// Output:
	// clicks ann:/home@1 → sums ann:1@1
	// payments ann:3@2   → sums ann:31@2
	// clicks ann:/help@3 → sums ann:32@3
}

func ExampleGroupTable() {
	demo(func(b *stream.Builder) {
		users := stream.FromTable(b, Users)
		byCountry := stream.GroupTable(users, func(user, country string) (string, string) { return country, user })
		byCountry.Count(stream.Named("users-by-country")).To(Sums)
	},
		"users ann:fr@1", "users bob:fr@2", "users ann:it@3", "users bob:⊥@4")
	// Output:
	// users ann:fr@1 → sums fr:1@1
	// users bob:fr@2 → sums fr:2@2
	// users ann:it@3 → sums fr:1@3, sums it:1@3
	// users bob:⊥@4  → sums fr:0@4
}

func ExampleGroupedTable_Reduce() {
	demo(func(b *stream.Builder) {
		limits := stream.FromTable(b, Limits)
		byTeam := stream.GroupTable(limits, func(user string, limit int64) (string, int64) { return user[:1], limit })
		byTeam.Reduce(
			func(sum, limit int64) int64 { return sum + limit },
			func(sum, limit int64) int64 { return sum - limit },
		).To(Sums)
	},
		"limits a1:100@1", "limits a2:50@2", "limits a1:70@3", "limits a2:⊥@4")
	// Output:
	// limits a1:100@1 → sums a:100@1
	// limits a2:50@2  → sums a:150@2
	// limits a1:70@3  → sums a:120@3
	// limits a2:⊥@4   → sums a:70@4
}

func ExampleAggregateTable() {
	demo(func(b *stream.Builder) {
		users := stream.FromTable(b, Users)
		byCountry := stream.GroupTable(users, func(user, country string) (string, string) { return country, user })
		names := stream.AggregateTable(byCountry, stream.Aggregator[string, string]{
			Add: func(_, user, names string) string {
				all := append(strings.Fields(names), user)
				slices.Sort(all)
				return strings.Join(all, " ")
			},
			Subtract: func(_, user, names string) string {
				return strings.Join(slices.DeleteFunc(strings.Fields(names), func(n string) bool { return n == user }), " ")
			},
			Delete: func(_, names string) bool { return names == "" },
		}, texts())
		names.To(Out)
	},
		"users bob:fr@1", "users ann:fr@2", "users ann:it@3", "users bob:⊥@4")
	// Output:
	// users bob:fr@1 → out fr:bob@1
	// users ann:fr@2 → out fr:ann bob@2
	// users ann:it@3 → out fr:bob@3, out it:ann@3
	// users bob:⊥@4  → out fr:⊥@4
}
