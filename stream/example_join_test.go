package stream_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/rekastream/reka/stream"
)

// or is a value, or what stands for none.
func or[T any](v *T, none string) string {
	if v == nil {
		return none
	}
	return fmt.Sprint(*v)
}

func ExampleJoin() {
	demo(func(b *stream.Builder) {
		clicks, purchases := stream.From(b, Clicks), stream.From(b, Purchases)
		w := stream.Between(0, time.Minute, 10*time.Second) // bought within a minute after the click
		stream.Join(clicks, purchases, w, func(_, page, product string) string {
			return page + " " + product
		}).To(Out)
	},
		"clicks ann:/tea@10", "purchases ann:tea@30", "clicks ann:/cups@40", "purchases ann:cup@70", "purchases ann:pot@71", "purchases ann:jar@101")
	// Output:
	// clicks ann:/tea@10    → –
	// purchases ann:tea@30  → out ann:/tea tea@30
	// clicks ann:/cups@40   → –
	// purchases ann:cup@70  → out ann:/tea cup@70, out ann:/cups cup@70
	// purchases ann:pot@71  → out ann:/cups pot@71
	// purchases ann:jar@101 → –
}

func ExampleLeftJoin() {
	demo(func(b *stream.Builder) {
		clicks, purchases := stream.From(b, Clicks), stream.From(b, Purchases)
		w := stream.Between(0, time.Minute, 10*time.Second)
		stream.LeftJoin(clicks, purchases, w, func(_, page string, product *string) string {
			return page + " " + or(product, "nothing")
		}, stream.LateLeft(Late)).To(Out)
	},
		"clicks ann:/tea@10", "clicks ann:/cups@20", "purchases ann:cup@75", "purchases bob:pot@80", "clicks bob:/jars@81", "clicks cid:/late@5", "clicks bob:/home@160")
	// Output:
	// clicks ann:/tea@10   → –
	// clicks ann:/cups@20  → –
	// purchases ann:cup@75 → out ann:/cups cup@75
	// purchases bob:pot@80 → –
	// clicks bob:/jars@81  → out ann:/tea nothing@10
	// clicks cid:/late@5   → late cid:/late@5 (reka-late-stream-time: 81000)
	// clicks bob:/home@160 → out bob:/jars nothing@81
}

func ExampleOuterJoin() {
	demo(func(b *stream.Builder) {
		clicks, purchases := stream.From(b, Clicks), stream.From(b, Purchases)
		w := stream.Within(10*time.Second, 0)
		stream.OuterJoin(clicks, purchases, w, func(_ string, page, product *string) string {
			return or(page, "no click") + ", " + or(product, "nothing")
		}).To(Out)
	},
		"clicks ann:/tea@0", "purchases ann:tea@10", "purchases bob:pot@15", "clicks cid:/cups@20", "clicks dan:/home@31")
	// Output:
	// clicks ann:/tea@0    → –
	// purchases ann:tea@10 → out ann:/tea, tea@10
	// purchases bob:pot@15 → –
	// clicks cid:/cups@20  → –
	// clicks dan:/home@31  → out bob:no click, pot@15, out cid:/cups, nothing@20
}

func ExampleJoinTable() {
	demo(func(b *stream.Builder) {
		payments, limits := stream.From(b, Payments), stream.FromTable(b, Limits)
		stream.JoinTable(payments, limits, func(_ string, amount, limit int64) string {
			return fmt.Sprintf("%d of %d", amount, limit)
		}).To(Out)
	},
		"payments ann:5@1", "limits ann:100@2", "payments ann:6@3", "limits ann:50@5", "payments ann:7@4", "limits ann:⊥@6", "payments ann:8@7")
	// Output:
	// payments ann:5@1 → –
	// limits ann:100@2 → –
	// payments ann:6@3 → out ann:6 of 100@3
	// limits ann:50@5  → –
	// payments ann:7@4 → out ann:7 of 50@4
	// limits ann:⊥@6   → –
	// payments ann:8@7 → –
}

func ExampleLeftJoinTable() {
	demo(func(b *stream.Builder) {
		payments, limits := stream.From(b, Payments), stream.FromTable(b, Limits)
		stream.LeftJoinTable(payments, limits, func(_ string, amount int64, limit *int64) string {
			return fmt.Sprintf("%d of %s", amount, or(limit, "any"))
		}).To(Out)
	},
		"payments ann:5@1", "limits ann:100@2", "payments ann:6@3", "payments ⊥:7@4", "payments ann:⊥@5")
	// Output:
	// payments ann:5@1 → out ann:5 of any@1
	// limits ann:100@2 → –
	// payments ann:6@3 → out ann:6 of 100@3
	// payments ⊥:7@4   → out ⊥:7 of any@4
	// payments ann:⊥@5 → –
}

func ExampleOuterJoin_closed() {
	demo(func(b *stream.Builder) {
		clicks, purchases := stream.From(b, Clicks), stream.From(b, Purchases)
		w := stream.Within(10*time.Second, 0)
		stream.OuterJoin(clicks, purchases, w, func(_ string, page, product *string) string {
			return or(page, "no click") + ", " + or(product, "nothing")
		}, stream.LateRight(Late)).To(Out)
	},
		"clicks ann:/tea@0", "clicks bob:/cups@12", "purchases bob:cup@3", "purchases ann:tea@1")
	// Output:
	// clicks ann:/tea@0   → –
	// clicks bob:/cups@12 → out ann:/tea, nothing@0
	// purchases bob:cup@3 → out bob:/cups, cup@12
	// purchases ann:tea@1 → late ann:tea@1 (reka-late-stream-time: 12000)
}

func ExampleTableFirst() {
	demo(func(b *stream.Builder) {
		payments, limits := stream.From(b, Payments), stream.FromTable(b, Limits, stream.TableFirst())
		stream.JoinTable(payments, limits, func(_ string, amount, limit int64) string {
			return fmt.Sprintf("%d of %d", amount, limit)
		}).To(Out)
	},
		"limits ann:100@50", "payments ann:5@1", "start", "limits ann:70@51", "payments ann:6@2")
	// Output:
	// limits ann:100@50 → –
	// payments ann:5@1  → –
	// start             → out ann:5 of 100@1
	// limits ann:70@51  → –
	// payments ann:6@2  → out ann:6 of 70@2
}

func ExampleVersioned() {
	demo(func(b *stream.Builder) {
		limits := stream.FromTable(b, Limits, stream.Versioned(time.Hour), stream.Named("limits-by-time"))
		stream.JoinTable(stream.From(b, Payments), limits, func(_ string, amount, limit int64) string {
			return fmt.Sprintf("%d of %d", amount, limit)
		}).To(Out)
	},
		"limits ann:100@10", "limits ann:50@20", "payments ann:5@15", "payments ann:6@25", "payments ann:7@5", "limits ann:80@13", "payments ann:8@15")
	// Output:
	// limits ann:100@10 → –
	// limits ann:50@20  → –
	// payments ann:5@15 → out ann:5 of 100@15
	// payments ann:6@25 → out ann:6 of 50@25
	// payments ann:7@5  → –
	// limits ann:80@13  → –
	// payments ann:8@15 → out ann:8 of 80@15
}

func ExampleWithTableWait() {
	demo(func(b *stream.Builder) {
		limits := stream.FromTable(b, Limits, stream.Versioned(time.Hour))
		stream.JoinTable(stream.From(b, Payments), limits, func(_ string, amount, limit int64) string {
			return fmt.Sprintf("%d of %d", amount, limit)
		}, stream.WithTableWait(5*time.Second), stream.Named("patient")).To(Out)
	},
		"limits ann:100@0", "payments ann:5@10", "limits ann:50@9", "payments ann:6@14", "limits bob:1@15", "payments ann:7@3")
	// Output:
	// limits ann:100@0  → –
	// payments ann:5@10 → –
	// limits ann:50@9   → –
	// payments ann:6@14 → –
	// limits bob:1@15   → out ann:5 of 50@10
	// payments ann:7@3  → out ann:7 of 100@3
}

func ExampleJoinGlobal() {
	demo(func(b *stream.Builder) {
		capitals := stream.Global(b, Capitals)
		moves := stream.Changes(stream.FromTable(b, Users))
		stream.JoinGlobal(moves, capitals,
			func(_, country string) (string, bool) { return country, true },
			func(user, country, city string) string { return country + ": " + city },
		).To(Out)
	},
		"capitals fr:Paris@100", "users ann:fr@1", "users bob:it@2", "capitals it:Rome@3", "users bob:it@4")
	// Output:
	// capitals fr:Paris@100 → –
	// users ann:fr@1        → out ann:fr: Paris@1
	// users bob:it@2        → –
	// capitals it:Rome@3    → –
	// users bob:it@4        → out bob:it: Rome@4
}

func ExampleLeftJoinGlobal() {
	demo(func(b *stream.Builder) {
		capitals := stream.Global(b, Capitals)
		moves := stream.Changes(stream.FromTable(b, Users))
		stream.LeftJoinGlobal(moves, capitals,
			func(_, country string) (string, bool) { return country, country != "none" },
			func(user, country string, city *string) string { return country + ": " + or(city, "somewhere") },
		).To(Out)
	},
		"capitals fr:Paris@0", "users ann:fr@1", "users bob:none@2", "users cid:it@3", "users ann:⊥@4")
	// Output:
	// capitals fr:Paris@0 → –
	// users ann:fr@1      → out ann:fr: Paris@1
	// users bob:none@2    → out bob:none: somewhere@2
	// users cid:it@3      → out cid:it: somewhere@3
	// users ann:⊥@4       → –
}

func ExampleJoinTables() {
	demo(func(b *stream.Builder) {
		users, limits := stream.FromTable(b, Users), stream.FromTable(b, Limits)
		stream.JoinTables(users, limits, func(_, country string, limit int64) string {
			return fmt.Sprintf("%s %d", country, limit)
		}, texts(), stream.Named("customers")).To(Out)
	},
		"users ann:fr@1", "limits ann:100@5", "users ann:it@2", "users ann:it@6", "limits ann:⊥@7", "users ann:⊥@8")
	// Output:
	// users ann:fr@1   → –
	// limits ann:100@5 → out ann:fr 100@5
	// users ann:it@2   → out ann:it 100@5
	// users ann:it@6   → –
	// limits ann:⊥@7   → out ann:⊥@7
	// users ann:⊥@8    → –
}

func ExampleJoinTables_versioned() {
	demo(func(b *stream.Builder) {
		users := stream.FromTable(b, Users, stream.Versioned(time.Hour))
		limits := stream.FromTable(b, Limits, stream.Versioned(time.Hour))
		stream.JoinTables(users, limits, func(_, country string, limit int64) string {
			return fmt.Sprintf("%s %d", country, limit)
		}, texts()).To(Out)
	},
		"users ann:fr@3", "limits ann:100@5", "users ann:it@2", "limits ann:⊥@4", "users ann:us@6")
	// Output:
	// users ann:fr@3   → –
	// limits ann:100@5 → out ann:fr 100@5
	// users ann:it@2   → –
	// limits ann:⊥@4   → –
	// users ann:us@6   → out ann:us 100@6
}

func ExampleLeftJoinTables() {
	demo(func(b *stream.Builder) {
		users, limits := stream.FromTable(b, Users), stream.FromTable(b, Limits)
		stream.LeftJoinTables(users, limits, func(_, country string, limit *int64) string {
			return country + " " + or(limit, "no limit")
		}, texts()).To(Out)
	},
		"limits bob:10@1", "users ann:fr@2", "limits ann:100@3", "limits ann:⊥@4", "users ann:⊥@5")
	// Output:
	// limits bob:10@1  → –
	// users ann:fr@2   → out ann:fr no limit@2
	// limits ann:100@3 → out ann:fr 100@3
	// limits ann:⊥@4   → out ann:fr no limit@4
	// users ann:⊥@5    → out ann:⊥@5
}

func ExampleOuterJoinTables() {
	demo(func(b *stream.Builder) {
		users, limits := stream.FromTable(b, Users), stream.FromTable(b, Limits)
		stream.OuterJoinTables(users, limits, func(_ string, country *string, limit *int64) string {
			return or(country, "nowhere") + " " + or(limit, "no limit")
		}, texts()).To(Out)
	},
		"limits ann:10@1", "users ann:fr@2", "limits ann:⊥@3", "users ann:⊥@4")
	// Output:
	// limits ann:10@1 → out ann:nowhere 10@1
	// users ann:fr@2  → out ann:fr 10@2
	// limits ann:⊥@3  → out ann:fr no limit@3
	// users ann:⊥@4   → out ann:⊥@4
}

func ExampleJoinForeign() {
	demo(func(b *stream.Builder) {
		users, capitals := stream.FromTable(b, Users), stream.FromTable(b, Capitals)
		stream.JoinForeign(users, capitals,
			func(_, country string) (string, bool) { return country, country != "none" },
			func(user, country, city string) string { return strings.ToUpper(country) + " " + city },
			texts(), stream.Named("near")).To(Out)
	},
		"users ann:fr@1", "users bob:fr@2", "capitals fr:Paris@3", "users ann:it@4", "capitals fr:Lyon@5", "users bob:none@6")
	// Output:
	// users ann:fr@1      → –
	// users bob:fr@2      → –
	// capitals fr:Paris@3 → out ann:FR Paris@3, out bob:FR Paris@3
	// users ann:it@4      → out ann:⊥@4
	// capitals fr:Lyon@5  → out bob:FR Lyon@5
	// users bob:none@6    → out bob:⊥@6
}

func ExampleLeftJoinForeign() {
	demo(func(b *stream.Builder) {
		users, capitals := stream.FromTable(b, Users), stream.FromTable(b, Capitals)
		stream.LeftJoinForeign(users, capitals,
			func(_, country string) (string, bool) { return country, country != "none" },
			func(user, country string, city *string) string { return country + " " + or(city, "?") },
			texts()).To(Out)
	},
		"users ann:fr@1", "capitals fr:Paris@3", "users ann:none@4", "users ann:fr@2", "capitals fr:⊥@5", "users ann:⊥@6")
	// Output:
	// users ann:fr@1      → out ann:fr ?@1
	// capitals fr:Paris@3 → out ann:fr Paris@3
	// users ann:none@4    → out ann:none ?@4
	// users ann:fr@2      → out ann:fr Paris@3
	// capitals fr:⊥@5     → out ann:fr ?@5
	// users ann:⊥@6       → out ann:⊥@6
}
