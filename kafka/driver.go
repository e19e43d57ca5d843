package kafka

import (
	"context"
	"time"

	"github.com/rekastream/reka/internal/work"
)

// Driver is the seam between Reka and a Kafka: the one over sarama's
// low-level requests, and the tester's in-memory one. It is public so that a
// Client can be built on it; it is not meant to be implemented outside Reka
// and may grow.
//
// No method of a Driver dials before it must. All methods may be called from
// any goroutine. Every blocking call ends with its context, whose error it
// returns (wrapped). Trouble of the network, leaders that move and
// coordinators that load are retried inside for as long as the context lives;
// errors that come out are decisions of the broker, typed as in errors.go, or
// ErrClosed. A callback that the driver calls must not block and must not
// call back into the same object unless it says so.
type Driver interface {
	// Clock returns the clock that all waiting goes through.
	Clock() Clock

	// Work returns what counts running goroutines, or nil.
	Work() work.Counter

	// NewFetcher returns a Fetcher with connections of its own.
	NewFetcher(FetcherConfig) (Fetcher, error)

	// NewProducer returns an idempotent Producer with connections of its
	// own.
	NewProducer(ProducerConfig) (Producer, error)

	// NewTransactor returns a Transactor with connections of its own.
	// ErrUnsupported if the protocol version that is set has no transactions.
	NewTransactor(TransactorConfig) (Transactor, error)

	// NewMember returns a member of a consumer group that has not joined.
	NewMember(MemberConfig) (Member, error)

	// Admin returns the driver's Admin, one for all.
	Admin() Admin

	// Close ends everything that was made of the driver and waits for it.
	// Closing twice does nothing.
	Close() error
}

// Isolation says what a reader sees of transactions.
type Isolation int8

const (
	// ReadCommitted hides records of open and aborted transactions. It is
	// the default.
	ReadCommitted Isolation = iota
	// ReadUncommitted shows everything.
	ReadUncommitted
)

// FetcherConfig describes a Fetcher. The zero value works.
type FetcherConfig struct {
	Isolation Isolation

	// PartitionBytes bounds what is delivered of one partition and not yet
	// released: below it more is fetched. A single batch may exceed it.
	// Default 2 MiB.
	PartitionBytes int

	// TotalBytes bounds the same over all partitions. A partition of which
	// nothing is held may always fetch one batch, since somebody may wait for
	// just that. Default 64 MiB.
	TotalBytes int

	// MaxWait is how long the broker holds an empty answer back. Default
	// 500 ms.
	MaxWait time.Duration
}

// Fetcher reads any number of partitions, each from its own position, at
// least one request a broker ahead of those who consume. A partition whose
// budget is used up is left out of requests and slows no other.
type Fetcher interface {
	// Follow starts to read a partition. If it is followed already the new
	// terms replace the old ones: nothing that was asked for under the old
	// terms is delivered afterwards. It never blocks on the network.
	Follow(Follow)

	// Unfollow stops reading. When it returns, Deliver is not running for
	// these partitions and will not be called again. Batches that were
	// delivered stay valid and must still be released.
	Unfollow(...TopicPartition)

	// Close ends the fetcher and waits for its goroutines.
	Close() error
}

// Follow are the terms on which one partition is read.
type Follow struct {
	TopicPartition

	// TopicID, if not zero, is the topic that must stand behind the name;
	// another one ends the following with ErrTopicChanged.
	TopicID TopicID

	// Position is the first offset wanted.
	Position int64

	// Deliver receives the batches in order, from a goroutine of the
	// fetcher. The batch belongs to the receiver, who releases it when it is
	// processed. The last one of a failed partition has Err set:
	// ErrOffsetOutOfRange (as *OffsetOutOfRangeError; as *TruncatedError if
	// what was delivered before was lost by an unclean election, and the log
	// has grown again), ErrUnknownTopic (told by the broker for longer than
	// metadata may be stale), ErrTopicChanged, ErrNotAuthorized, or
	// ErrCorrupt.
	Deliver func(*Batch)
}

// Compression of written batches.
type Compression int8

// The codecs of Kafka.
const (
	LZ4 Compression = iota // the default
	NoCompression
	Gzip
	Snappy
	Zstd
)

// ProducerConfig describes a Producer. The zero value works.
type ProducerConfig struct {
	Compression Compression

	// BatchBytes bounds one record batch, uncompressed. A record larger than
	// it goes alone. Default 1,000,000: what a broker accepts by default
	// with room for framing.
	BatchBytes int

	// DeliveryTimeout is the time from Produce within which a record must be
	// acknowledged; its run fails with ErrDeliveryTimeout otherwise, and if
	// it may have been written the producer epoch is renewed so that later
	// records do not depend on it. Zero: no limit.
	DeliveryTimeout time.Duration
}

// Producer writes records, idempotently, with acks from all in-sync replicas
// and one batch in flight a partition: order within a partition is the order
// of Produce over retries and leader moves.
type Producer interface {
	// Produce queues o behind everything queued for its partition. It does
	// not block on the network and does not copy: records, their bytes and
	// the slice must not change until the last Done. How much is queued is
	// for the caller to bound.
	Produce(o Outgoing)

	// Close fails what is still queued or in flight with ErrClosed and waits
	// for the producer's goroutines. Who wants everything acked waits for
	// Done first.
	Close() error
}

// Outgoing are records for one partition, in order.
type Outgoing struct {
	TopicPartition
	Records []Record

	// Done is called once or more, for consecutive runs of Records that
	// together cover all of them once, in order. It is called from a
	// goroutine of the producer, or from within Produce.
	//
	// Run.Err is nil when all replicas in sync have the run. Otherwise none
	// of it is written, unless the error is ErrDeliveryTimeout or ErrClosed:
	// then it may be. A run fails alone: what the broker refuses as too
	// large is cut until a single record remains (ErrTooLarge). Other
	// errors: ErrUnknownTopic, ErrNotAuthorized, ErrInvalidRecord.
	Done func(Run)
}

// Run is the fate of Records[From:To] of one Outgoing.
type Run struct {
	From, To int
	// Base is the offset of Records[From]; the others follow without a gap.
	Base int64
	Err  error
}

// MemberConfig describes a member of a consumer group.
type MemberConfig struct {
	Group string

	// InstanceID makes the member static. Empty: dynamic.
	InstanceID string

	// Protocol is the assignor's name. All members of a group need a common
	// one.
	Protocol string

	SessionTimeout    time.Duration // default 10 s
	HeartbeatInterval time.Duration // default 1 s
	RebalanceTimeout  time.Duration // default 60 s

	// Subscribe is asked before each join what to join with.
	Subscribe func() Subscription

	// Plan is called on the member that the group made its leader. It
	// answers with the share of each member, by member id. A member left out
	// gets an empty one. It may call Admin, and must heed its context. Its
	// error is returned by the join, which is repeated after a pause.
	Plan func(context.Context, []GroupMember) (map[string]Share, error)

	// Assigned is called with each assignment, in order. The member counts
	// as having adopted it when the call returns.
	Assigned func(Assignment)

	// Lost is called when the member is not, or no longer, one of the group
	// (unknown member id, fenced instance id, no answered heartbeat for a
	// session timeout): nothing may be written for its partitions any more.
	// The member joins again by itself with a new id, but for
	// ErrFencedInstance, ErrNotAuthorized and ErrAuthentication, which end
	// it.
	Lost func(error)
}

// Subscription is what a member joins with.
type Subscription struct {
	Topics   []string
	Owned    []TopicPartition // claimed partitions, for cooperative rebalances
	UserData []byte
}

// GroupMember is another member as its group's leader sees it.
type GroupMember struct {
	ID         string
	InstanceID string
	Subscription
	// Generation is the one in which Owned was adopted, -1 if unknown.
	Generation int32
}

// Share is what the leader gives to one member.
type Share struct {
	Partitions []TopicPartition
	UserData   []byte
}

// Assignment is a share as its member gets it.
type Assignment struct {
	Share
	MemberID   string
	Generation int32
	// Rejoined reports that the member missed no generation since its last
	// assignment: it kept its member id and the generation before was the
	// one that it had adopted.
	Rejoined bool
}

// Member is one member of a consumer group. Its heartbeats go over a
// connection of their own, so that no join, commit or fetch delays them.
type Member interface {
	// Start joins the group in the background and stays in it. Assigned,
	// Lost, Subscribe and Plan are called from one goroutine.
	Start()

	// Rejoin asks for a rebalance: the member joins again with what
	// Subscribe then answers. (The broker starts a rebalance only if the
	// bytes differ or the member leads: callers that must be heard put a
	// nonce into the user data.)
	Rejoin()

	// Lease is the time until which the member may trust that its session
	// stands: the sending of the last answered heartbeat plus the session
	// timeout. Zero before the first assignment.
	Lease() time.Time

	// Commit commits offsets in the name of a generation. The error of a
	// partition stands in Committed.Err; the error returned concerns all:
	// ErrIllegalGeneration, ErrUnknownMember, ErrRebalanceInProgress,
	// ErrFencedInstance, ErrNotAuthorized.
	Commit(ctx context.Context, memberID string, generation int32, offsets []CommittedOffset) error

	// Committed returns the group's committed offsets of partitions, with
	// Offset -1 where there is none. With stable it waits until no
	// transaction has an offset pending.
	Committed(ctx context.Context, partitions []TopicPartition, stable bool) ([]CommittedOffset, error)

	// Leave leaves the group, also as a static member, and stops the
	// heartbeats. Commits are refused from then on.
	Leave(ctx context.Context) error

	// Close ends the member without leaving and waits for its goroutines.
	Close() error
}

// CommittedOffset is the position of a group in one partition.
type CommittedOffset struct {
	TopicPartition
	Offset      int64 // next to read
	LeaderEpoch int32 // of the record before it, -1 if unknown
	Metadata    string
	Err         error
}

// Admin asks and changes topics.
type Admin interface {
	// Topics describes the named topics. One that does not exist is left out
	// of the answer; none is created by asking.
	Topics(ctx context.Context, names ...string) (map[string]Topic, error)

	// Configs returns the effective settings of one topic.
	Configs(ctx context.Context, topic string) (map[string]string, error)

	// CreateTopics creates topics and returns when their partitions have
	// leaders. The error joins those of single topics: ErrTopicExists,
	// ErrNotAuthorized, ErrInvalidTopic.
	CreateTopics(ctx context.Context, specs ...TopicSpec) error

	// CreatePartitions raises the partition count of a topic to n.
	CreatePartitions(ctx context.Context, topic string, n int32) error

	// DeleteTopics deletes topics. The error joins those of single topics.
	DeleteTopics(ctx context.Context, names ...string) error

	// Offsets returns a mark of each partition; ErrUnknownTopic if one of
	// them does not exist.
	Offsets(ctx context.Context, at Mark, partitions ...TopicPartition) (map[TopicPartition]int64, error)

	// DeleteRecords moves the log start of partitions up to offsets.
	DeleteRecords(ctx context.Context, before map[TopicPartition]int64) error

	// Group describes a consumer group. An unknown one has no members and
	// state "Dead".
	Group(ctx context.Context, name string) (Group, error)

	// Writers tells who has a transaction open in partitions: whose end is
	// not yet written there, whether it was decided or not, and whether its
	// writer lives or not. They are what holds back the last stable offset.
	// Partitions without any are left out of the answer; the writers of one
	// come by their Start. ErrUnknownTopic if one of the partitions does not
	// exist, ErrNotAuthorized without the right to read it, ErrUnsupported
	// from brokers that are too old to tell (before 3.0).
	Writers(ctx context.Context, partitions ...TopicPartition) (map[TopicPartition][]Writer, error)

	// GroupWriters tells who has offsets of a group pending in a transaction.
	// The brokers know it of the partition of their own topic in which the
	// group's offsets are, so there may be writers among them that concern
	// another group of the same partition. The errors are those of Writers,
	// for that topic, which principals often may not read; ErrUnknownTopic
	// also where a cluster has none.
	GroupWriters(ctx context.Context, group string) ([]Writer, error)

	// EpochEnd asks the leader of a partition about one of the leader epochs
	// in its log. It returns the newest epoch that is not newer than
	// leaderEpoch and in the log, and where the log goes on in a newer one:
	// the end of the log if there is no newer one. An epoch older than all
	// in the log ends where the log begins; of one newer than all the leader
	// knows nothing, and both are -1.
	//
	// A position whose record before it had leaderEpoch, or any epoch between
	// that and the leader's of that time, stands in the same log still if
	// end >= position; else the log was cut below it, and what stands there
	// now, if anything, is something else.
	//
	// NewestEpoch asks for the leader's own, and the end of its log. The
	// errors are ErrUnknownTopic, ErrNotAuthorized and ErrUnsupported.
	EpochEnd(ctx context.Context, tp TopicPartition, leaderEpoch int32) (epoch int32, end int64, err error)
}

// NewestEpoch stands for the epoch of a partition's leader.
const NewestEpoch int32 = -1

// Writer is somebody with an open transaction in a partition.
type Writer struct {
	// TransactionalID is empty where no coordinator tells: it does not know
	// the producer (any more), is just moving, or may not say it to this
	// principal.
	TransactionalID string

	ProducerID int64
	// ProducerEpoch is the one that the writer had when it wrote to the
	// partition last; its transactional id may have a newer one by now.
	ProducerEpoch int32

	// Start is the offset of the transaction's first record in the
	// partition, -1 if unknown. In the answer of GroupWriters it has no
	// meaning outside of the brokers.
	Start int64
}

// Mark names a position in a log.
type Mark int64

// Marks. A value ≥ 0 stands for the first offset whose record has at least
// that timestamp, in milliseconds, or the high watermark if there is none.
const (
	HighWatermark Mark = -1
	LogStart      Mark = -2
	LastStable    Mark = -3
)

// Topic is what the metadata tells of a topic.
type Topic struct {
	Name       string
	ID         TopicID
	Partitions int32
	// Replicas is the replication factor of partition 0.
	Replicas int16
}

// Group is what a coordinator tells of a consumer group.
type Group struct {
	Name     string
	State    string
	Protocol string
	Members  []GroupMember
	Shares   map[string]Share // by member id
}
