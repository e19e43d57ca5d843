import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.*;
import java.util.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Serves cases over standard input and output. A case is a line with the
 * topology, lines "topic TAB key TAB value TAB time", and an empty line; the
 * answer is lines "step TAB key TAB value TAB time", and a line "end", or
 * "error TAB text". \N stands for null. The step is the number of the input
 * that a result followed, from 0.
 */
public class Differential {
    static final String NONE = "~"; // a side of a join that is not there
    static final long LONG = 10_000_000; // above the time of every input
    static final Serde<String> S = Serdes.String();
    static final Consumed<String, String> IN = Consumed.with(S, S);

    final Map<String, String> spec = new HashMap<>();
    final StreamsBuilder builder;

    Differential(String line, Properties config) {
        builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(config)));
        for (String part : line.split(" ")) {
            int at = part.indexOf('=');
            spec.put(part.substring(0, at), part.substring(at + 1));
        }
    }

    String get(String name) { return spec.getOrDefault(name, ""); }
    Duration ms(String name) { return Duration.ofMillis(Long.parseLong(spec.get(name))); }

    static String or(String v) { return v == null ? NONE : v; }
    static String pair(String l, String r) { return or(l) + "|" + or(r); }
    static String letter(String v) { return v == null || v.isEmpty() ? null : v.substring(0, 1); }

    void build() {
        switch (get("op")) {
            case "count": case "reduce": case "aggregate": aggregation(); break;
            case "join": out(streamJoin()); break;
            case "joincount": recount(streamJoin()); break;
            case "tablejoin": out(tableJoin().toStream()); break;
            case "foreignjoin": out(foreignJoin().toStream()); break;
            case "streamtable": out(streamTable()); break;
            case "streamglobal": out(streamGlobal()); break;
            case "tableagg": case "tablecount": out(tableAggregation().toStream()); break;
            case "tablefilter": out(table("L", "left").filter((k, v) -> !v.startsWith("z")).toStream()); break;
            case "tablemap": out(table("L", "left").mapValues(v -> letter(v)).toStream()); break;
            case "totable": out(builder.stream("L", IN).toTable(Materialized.with(S, S)).toStream()); break;
            case "suppresstime": out(table("L", "left").suppress(untilTime()).toStream()); break;
            case "suppresscount":
                out(builder.stream("L", IN).groupByKey(Grouped.with(S, S)).count()
                    .suppress(untilTime()).toStream().mapValues(v -> v == null ? null : "" + v));
                break;
            default: throw new IllegalArgumentException("unknown op " + get("op"));
        }
    }

    void out(KStream<String, String> s) { s.to("out", Produced.with(S, S)); }

    /** Counts behind an operator that holds results back. */
    void recount(KStream<String, String> s) {
        KTable<Windowed<String>, Long> t = s.selectKey((k, v) -> k == null ? null : k.replaceAll("@.*", "")).groupByKey(Grouped.with(S, S))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(20), Duration.ofMillis(1000)))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>with(S, Serdes.Long()).withRetention(Duration.ofMillis(LONG)));
        out(flat(t.toStream().mapValues(v -> v == null ? null : "" + v)));
    }

    <W extends Windowed<String>> KStream<String, String> flat(KStream<W, String> s) {
        return s.selectKey((w, v) -> w.key() + "@" + w.window().start() + "/" + w.window().end());
    }

    KTable<String, String> table(String topic, String side) {
        String v = get("versioned");
        if (v.equals("both") || v.equals(side)) {
            return builder.table(topic, IN, Materialized.<String, String>as(
                Stores.persistentVersionedKeyValueStore("versions-" + topic, Duration.ofMillis(LONG), Duration.ofMillis(LONG)))
                .withKeySerde(S).withValueSerde(S));
        }
        // A store of its own, as a table's step that is not kept knows no old values.
        return builder.table(topic, IN, Materialized.<String, String>as(Stores.inMemoryKeyValueStore("rows-" + topic)).withKeySerde(S).withValueSerde(S));
    }

    KStream<String, String> input() {
        KStream<String, String> s = builder.stream("L", IN);
        switch (get("pre")) {
            case "filter": return s.filter((k, v) -> v != null && !v.startsWith("z"));
            case "rekey": return s.filter((k, v) -> v != null).selectKey((k, v) -> letter(v));
            case "merge": return s.merge(builder.stream("R", IN));
            default: return s;
        }
    }

    void aggregation() {
        KGroupedStream<String, String> g = input().groupByKey(Grouped.with(S, S));
        switch (get("window")) {
            case "": unwindowed(g); return;
            case "tumbling": timed(g.windowedBy(TimeWindows.ofSizeAndGrace(ms("size"), ms("grace")))); return;
            case "hopping": timed(g.windowedBy(TimeWindows.ofSizeAndGrace(ms("size"), ms("grace")).advanceBy(ms("advance")))); return;
            case "sliding": timed(g.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms("size"), ms("grace")))); return;
            case "session": sessions(g.windowedBy(SessionWindows.ofInactivityGapAndGrace(ms("gap"), ms("grace")))); return;
            default: throw new IllegalArgumentException("unknown window " + get("window"));
        }
    }

    void unwindowed(KGroupedStream<String, String> g) {
        switch (get("op")) {
            case "count": out(g.count().toStream().mapValues(v -> v == null ? null : "" + v)); break;
            case "reduce": out(g.reduce((a, b) -> a + "+" + b, Materialized.with(S, S)).toStream()); break;
            default: out(g.aggregate(() -> "0", (k, v, a) -> a + "+" + v, Materialized.with(S, S)).toStream());
        }
    }

    void timed(TimeWindowedKStream<String, String> w) {
        if (get("emit").equals("close")) w = w.emitStrategy(EmitStrategy.onWindowClose());
        Materialized<String, String, WindowStore<Bytes, byte[]>> m =
            Materialized.<String, String, WindowStore<Bytes, byte[]>>with(S, S).withRetention(Duration.ofMillis(LONG));
        switch (get("op")) {
            case "count": windowed(w.count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>with(S, Serdes.Long()).withRetention(Duration.ofMillis(LONG)))); break;
            case "reduce": windowed(w.reduce((a, b) -> a + "+" + b, m)); break;
            default: windowed(w.aggregate(() -> "0", (k, v, a) -> a + "+" + v, m));
        }
    }

    void sessions(SessionWindowedKStream<String, String> w) {
        if (get("emit").equals("close")) w = w.emitStrategy(EmitStrategy.onWindowClose());
        Materialized<String, String, SessionStore<Bytes, byte[]>> m =
            Materialized.<String, String, SessionStore<Bytes, byte[]>>with(S, S).withRetention(Duration.ofMillis(LONG));
        switch (get("op")) {
            case "count": windowed(w.count(Materialized.<String, Long, SessionStore<Bytes, byte[]>>with(S, Serdes.Long()).withRetention(Duration.ofMillis(LONG)))); break;
            case "reduce": windowed(w.reduce((a, b) -> a + "+" + b, m)); break;
            default: windowed(w.aggregate(() -> "0", (k, v, a) -> a + "+" + v, (k, a, b) -> a + b.substring(1), m));
        }
    }

    <V> void windowed(KTable<Windowed<String>, V> t) {
        if (get("emit").equals("suppress")) t = t.suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()));
        KStream<String, String> s = flat(t.toStream().mapValues(v -> v == null ? null : v.toString()));
        if (get("post").equals("recount")) recount(s); else out(s);
    }

    Suppressed<String> untilTime() {
        long max = Long.parseLong(spec.getOrDefault("maxrecords", "0"));
        return Suppressed.untilTimeLimit(ms("wait"),
            max > 0 ? Suppressed.BufferConfig.maxRecords(max).emitEarlyWhenFull() : Suppressed.BufferConfig.unbounded());
    }

    KStream<String, String> streamJoin() {
        KStream<String, String> l = builder.stream("L", IN);
        KStream<String, String> r = get("self").isEmpty() ? builder.stream("R", IN) : l;
        JoinWindows w = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(LONG), ms("grace")).before(ms("before")).after(ms("after"));
        StreamJoined<String, String, String> j = StreamJoined.with(S, S, S);
        switch (get("kind")) {
            case "inner": return l.join(r, Differential::pair, w, j);
            case "left": return l.leftJoin(r, Differential::pair, w, j);
            default: return l.outerJoin(r, Differential::pair, w, j);
        }
    }

    KTable<String, String> tableJoin() {
        KTable<String, String> l = table("L", "left"), r = table("R", "right");
        switch (get("kind")) {
            case "inner": return l.join(r, Differential::pair, Materialized.with(S, S));
            case "left": return l.leftJoin(r, Differential::pair, Materialized.with(S, S));
            default: return l.outerJoin(r, Differential::pair, Materialized.with(S, S));
        }
    }

    static String foreign(String v) {
        int at = v == null ? -1 : v.indexOf(':');
        return at < 0 ? null : v.substring(at + 1);
    }

    KTable<String, String> foreignJoin() {
        KTable<String, String> l = table("L", "left"), r = table("R", "right");
        return get("kind").equals("inner")
            ? l.join(r, Differential::foreign, Differential::pair, Materialized.with(S, S))
            : l.leftJoin(r, Differential::foreign, Differential::pair, Materialized.with(S, S));
    }

    KStream<String, String> streamTable() {
        KStream<String, String> l = builder.stream("L", IN);
        Joined<String, String, String> j = Joined.with(S, S, S, "wait");
        if (spec.containsKey("grace")) j = j.withGracePeriod(ms("grace"));
        KTable<String, String> r = table("R", "right");
        return get("kind").equals("inner") ? l.join(r, Differential::pair, j) : l.leftJoin(r, Differential::pair, j);
    }

    KStream<String, String> streamGlobal() {
        GlobalKTable<String, String> g = builder.globalTable("R", IN,
            Materialized.<String, String>as(Stores.inMemoryKeyValueStore("global")).withKeySerde(S).withValueSerde(S));
        KeyValueMapper<String, String, String> by = get("by").equals("key") ? (k, v) -> k : (k, v) -> foreign(v);
        KStream<String, String> l = builder.stream("L", IN);
        return get("kind").equals("inner") ? l.join(g, by, Differential::pair) : l.leftJoin(g, by, Differential::pair);
    }

    KTable<String, String> tableAggregation() {
        KGroupedTable<String, String> g = table("L", "left").groupBy((k, v) -> KeyValue.pair(letter(v), v), Grouped.with(S, S));
        if (get("op").equals("tablecount")) return g.count().mapValues(v -> "" + v);
        return g.aggregate(() -> "0", (k, v, a) -> a + "+" + v, (k, v, a) -> a + "-" + v, Materialized.with(S, S));
    }

    static String text(String s) { return s.equals("\\N") ? null : s; }
    static String field(String s) { return s == null ? "\\N" : s; }

    static void run(String line, List<String[]> inputs, Properties config, PrintWriter to) {
        Differential d = new Differential(line, config);
        d.build();
        Properties all = new Properties();
        all.putAll(config);
        try (TopologyTestDriver driver = new TopologyTestDriver(d.builder.build(all), all, Instant.EPOCH)) {
            Map<String, TestInputTopic<String, String>> topics = new HashMap<>();
            TestOutputTopic<String, String> out = driver.createOutputTopic("out", S.deserializer(), S.deserializer());
            for (int i = 0; i < inputs.size(); i++) {
                String[] f = inputs.get(i);
                topics.computeIfAbsent(f[0], n -> driver.createInputTopic(n, S.serializer(), S.serializer()))
                    .pipeInput(text(f[1]), text(f[2]), Long.parseLong(f[3]));
                for (TestRecord<String, String> r : out.readRecordsToList()) {
                    to.println(i + "\t" + field(r.key()) + "\t" + field(r.value()) + "\t" + r.timestamp());
                }
            }
        }
    }

    public static void main(String[] args) throws IOException {
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "differential");
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "unused:1");
        config.put(StreamsConfig.STATE_DIR_CONFIG, args[0]);
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
        // Wall clock must not hold results back.
        config.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        config.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintWriter to = new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8)));
        for (String line; (line = in.readLine()) != null;) {
            List<String[]> inputs = new ArrayList<>();
            for (String l; (l = in.readLine()) != null && !l.isEmpty();) inputs.add(l.split("\t", -1));
            try {
                run(line, inputs, config, to);
                to.println("end");
            } catch (Throwable e) {
                StringWriter w = new StringWriter();
                e.printStackTrace(new PrintWriter(w));
                to.println("error\t" + w.toString().replaceAll("\\s+", " "));
            }
            to.flush();
        }
    }
}
