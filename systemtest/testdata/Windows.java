import java.time.Duration;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;

/**
 * Reads and writes results of windows with what Kafka Streams has for it.
 *
 * <p>read BROKERS SIZE TOPIC SESSIONS: prints the records of a topic of time windows and of one of
 * sessions, as "topic partition key start end value", with key and value in hex.
 *
 * <p>write BROKERS SIZE TOPIC SESSIONS GAP INPUT N DIR: counts the N records of an input by time
 * window and by session.
 */
public class Windows {
  static final String BROKERS = "bootstrap.servers";

  public static void main(String[] a) throws Exception {
    long size = Long.parseLong(a[2]);
    if (a[0].equals("read")) {
      read(a[1], a[3], new TimeWindowedDeserializer<>(new ByteArrayDeserializer(), size));
      read(a[1], a[4], new SessionWindowedDeserializer<>(new ByteArrayDeserializer()));
    } else {
      write(a, size);
    }
  }

  static void read(String brokers, String topic, Deserializer<Windowed<byte[]>> keys) {
    Properties p = new Properties();
    p.put(BROKERS, brokers);
    p.put("isolation.level", "read_committed");
    try (Consumer<Windowed<byte[]>, byte[]> in = new KafkaConsumer<>(p, keys, new ByteArrayDeserializer())) {
      List<TopicPartition> all = in.partitionsFor(topic).stream()
          .map(i -> new TopicPartition(topic, i.partition())).collect(Collectors.toList());
      in.assign(all);
      in.seekToBeginning(all);
      Map<TopicPartition, Long> ends = in.endOffsets(all);
      while (all.stream().anyMatch(tp -> in.position(tp) < ends.get(tp))) {
        for (ConsumerRecord<Windowed<byte[]>, byte[]> r : in.poll(Duration.ofMillis(100))) {
          Window w = r.key().window();
          System.out.println(topic + " " + r.partition() + " x" + hex(r.key().key()) + " " + w.start() + " " + w.end()
              + " " + (r.value() == null ? "null" : hex(r.value())));
        }
      }
    }
  }

  static String hex(byte[] b) { return HexFormat.of().formatHex(b); }

  static void write(String[] a, long size) throws Exception {
    Duration grace = Duration.ofDays(1);
    StreamsBuilder b = new StreamsBuilder();
    KGroupedStream<byte[], byte[]> in = b.stream(a[6], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).groupByKey();
    in.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(size), grace)).count().toStream()
        .to(a[3], Produced.with(new WindowedSerdes.TimeWindowedSerde<>(Serdes.ByteArray(), size), Serdes.Long()));
    in.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofMillis(Long.parseLong(a[5])), grace)).count().toStream()
        .to(a[4], Produced.with(new WindowedSerdes.SessionWindowedSerde<>(Serdes.ByteArray()), Serdes.Long()));
    Properties p = new Properties();
    String app = a[3] + "-app";
    p.put(StreamsConfig.APPLICATION_ID_CONFIG, app);
    p.put(BROKERS, a[1]);
    p.put(StreamsConfig.STATE_DIR_CONFIG, a[8]);
    p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
    p.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    p.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
    p.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
    p.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
    p.put("auto.offset.reset", "earliest");
    try (KafkaStreams streams = new KafkaStreams(b.build(), p); Admin admin = Admin.create(Map.of(BROKERS, a[1]))) {
      streams.start();
      while (read(admin, app) < Long.parseLong(a[7])) {
        Thread.sleep(50); // until all is committed, or the caller gives up
      }
    }
  }

  static long read(Admin admin, String group) {
    try {
      return admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values().stream()
          .filter(Objects::nonNull).mapToLong(OffsetAndMetadata::offset).sum();
    } catch (Exception e) {
      return 0; // there is no group yet
    }
  }
}
