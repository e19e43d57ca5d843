package fakekafka

import "github.com/rekastream/reka/kafka/kafkatest"

// Lacks says what the fake cluster does differently from real brokers.
var Lacks = map[kafkatest.Capability]string{
	kafkatest.TopicNameChecks:    "the fake cluster takes any topic name",
	kafkatest.RecordChecks:       "the fake cluster takes records without a key everywhere",
	kafkatest.MetadataLimit:      "the fake cluster takes commit metadata of any size",
	kafkatest.InitFencing:        "the fake cluster takes any epoch at initialisation",
	kafkatest.PendingByPartition: "pending offsets of one partition make all of the group unstable in the fake cluster",
	kafkatest.OffsetsTopic:       "the fake cluster keeps offsets in no topic",
	kafkatest.EmptyEpochs:        "the fake cluster answers for epochs that batches have only",
	kafkatest.StableLogStart:     "compaction in the fake cluster moves the log start to the first surviving batch",
}
