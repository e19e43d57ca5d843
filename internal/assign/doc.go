// Package assign decides which member of a group runs which task, and holds
// the bytes that the members exchange about it. It is pure: no goroutine, no
// clock, no network. The same input gives the same plan, whatever the order
// of the members in it.
//
// A task is one partition of one subgraph. All topics of a subgraph are
// co-partitioned, so partition p of each of them goes to one member.
//
// # A round
//
// The group's leader collects what the members declare, claim and keep on
// disk, and Plan answers in four steps:
//
//  1. Declarations. For each subgraph one declaration counts: the widest one
//     (topics, and state that is kept) whose topics all exist with one
//     partition count. Members with another one are refused, with the reason
//     (see Refusal). So a task always runs whole, and in a rolling upgrade
//     that adds a topic or a table, the members that know it take over; no
//     record is processed without them.
//  2. Claims. A member claims what it still runs. Where several claim one
//     task, the claim of the highest generation counts (KIP-792).
//  3. Target. Who shall run what, in this order of importance: within a
//     subgraph no two members differ by more than one task; members are as
//     equal in total as that allows; the fewest tasks move away from those
//     who claim them; a task that nobody claims goes where its state is.
//  4. Cooperation. A task reaches its new owner only in a round in which its
//     old owner no longer claims it. Until then it is Awaiting for the one
//     and Releasing for the other, and nobody owns it.
//
// # Invariants
//
//   - In one generation a task is in the Tasks of at most one member.
//   - A task that a member claims with the counting claim is given to nobody
//     else.
//   - If members release what they must and join again, the second round's
//     plan has the same target as the first and nothing held back.
//   - A member is given a task only if it declares the subgraph.
//
// A task in Releasing belongs to nobody in this generation, so its former
// owner may still write its last epochs, if it missed no generation. A task
// that a member claims and that is in neither list belongs to somebody else
// by now: its epochs are dropped.
//
// # Bytes
//
// MemberData travels from member to leader, ShareData back. Both begin with
// their version and the lowest version that can read them; later versions
// only append. Names stand in a dictionary, once. A group's metadata is one
// record for its broker, so all of it together has a budget: the routing
// table, then all partitions of a task but one, are left out of the answer
// where they do not fit (see Result.Encode).
package assign
