package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/systemtest/realkafka"
)

// nodeProperties make nodes notice each other's death sooner, so that more
// faults fit in a run.
var nodeProperties = map[string]string{
	"broker.session.timeout.ms":    "5000",
	"broker.heartbeat.interval.ms": "1000",
}

// run is one soak, from start to verdict. Owned by the goroutine of Run.
type run struct {
	cfg     Config
	log     *os.File
	cluster *realkafka.Cluster
	proxies *proxies
	brokers *brokers
	client  *kafka.Client
	nemesis *nemesis
	reader  *reader
	watch   *watch
	load    *load
	h       history
	result  Result
}

// Run runs a soak and judges it. The error says what kept it from being
// judged.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Dir = abs
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	r := &run{cfg: cfg, h: history{Guarantee: cfg.Guarantee, Views: map[string]map[string]row{}}}
	r.result.cfg = cfg
	if r.log, err = os.Create(filepath.Join(cfg.Dir, "nemesis.log")); err != nil {
		return nil, err
	}
	defer r.log.Close()
	defer r.close()
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	if err := r.attack(ctx); err != nil {
		return nil, err
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	if err := r.gather(); err != nil {
		return nil, err
	}
	r.result.found = judge(&r.h)
	if !r.result.OK() {
		if err := r.keepHistory(); err != nil {
			return nil, err
		}
	}
	return &r.result, os.WriteFile(filepath.Join(cfg.Dir, "verdict.txt"), []byte(r.result.Report()+r.result.Line()+"\n"), 0o600)
}

// keepHistory writes what was judged, for whoever looks for the cause.
func (r *run) keepHistory() error {
	b, err := json.Marshal(&r.h)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.cfg.Dir, "history.json"), b, 0o600)
}

func (r *run) sayf(format string, a ...any) {
	fmt.Fprintf(r.cfg.Progress, "soak: %s\n", fmt.Sprintf(format, a...))
}

// start starts everything and waits for the first outputs.
func (r *run) start(ctx context.Context) (err error) {
	r.sayf("three nodes start")
	r.proxies = newProxies()
	r.cluster, err = realkafka.Launch(filepath.Join(r.cfg.Dir, "kafka"),
		realkafka.Config{Nodes: 3, Through: r.proxies.through, Properties: nodeProperties})
	if err != nil {
		return err
	}
	if r.brokers, err = newBrokers(r.cluster.Brokers()); err != nil {
		return err
	}
	if r.client, err = kafka.NewClient(r.cluster.Brokers()); err != nil {
		return err
	}
	create, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := r.client.EnsureTopics(create, specs()...); err != nil {
		return err
	}
	if r.reader, err = newReader(r.cluster.Brokers()); err != nil {
		return err
	}
	if r.load, err = newLoad(r.client, r.cfg); err != nil {
		return err
	}
	r.watch = newWatch(r.brokers)
	n := newNemesis(r.cfg, io.MultiWriter(r.log, r.cfg.Progress))
	n.cluster, n.proxies, n.brokers, n.began = r.cluster, r.proxies, r.brokers, time.Now()
	n.service = service{Brokers: r.cluster.ProxiedBrokers(), Guarantee: r.cfg.Guarantee}
	r.nemesis = n
	r.sayf("%d processes start", r.cfg.Processes)
	if err := n.launch(); err != nil {
		return err
	}
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if _, outputs := r.reader.counts(); outputs > 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("soak: no output within two minutes of an undisturbed start: see %s", r.cfg.Dir)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attack runs the schedule and makes everything good again.
func (r *run) attack(ctx context.Context) error {
	faults := schedule(r.cfg)
	fmt.Fprintf(r.log, "# %s\n", r.cfg.Replay())
	for _, f := range faults {
		fmt.Fprintf(r.log, "# %v\n", f)
	}
	r.sayf("%d faults in %v", len(faults), r.cfg.Duration)
	r.nemesis.ask(func() { r.nemesis.began = time.Now() })
	r.nemesis.attack(ctx, faults)
	if err := ctx.Err(); err != nil {
		return err
	}
	heal, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := r.nemesis.heal(heal); err != nil {
		return fmt.Errorf("soak: the nodes do not become whole: %w", err)
	}
	return nil
}

// settle drains what is under way, looks at the processes and stops them.
func (r *run) settle(ctx context.Context) error {
	r.load.stop()
	r.sayf("drain")
	limit, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	var err error
	if r.h.LastRates, err = r.load.finish(limit); err != nil {
		return err
	}
	r.h.Emitted, r.h.EmitErrors = r.load.next, r.load.failures()
	if lacking := r.drained(limit); lacking != "" {
		if err := ctx.Err(); err != nil {
			return err
		}
		return r.stuck(fmt.Sprintf("%v after the nemesis stopped: %s", drainTime, lacking))
	}
	if lacking := r.look(limit); lacking != "" {
		if err := ctx.Err(); err != nil {
			return err
		}
		return r.stuck("the processes do not come to rest: " + lacking)
	}
	r.sayf("stop")
	limit, cancel = context.WithTimeout(ctx, endTime+30*time.Second)
	defer cancel()
	if err := r.nemesis.stopAll(limit); err != nil {
		return err
	}
	return r.readStores()
}

// stuck shows what every process does.
func (r *run) stuck(why string) error {
	r.sayf("stuck: %s", why)
	r.h.Stuck = append(r.h.Stuck, why)
	r.nemesis.dumpGoroutines()
	return nil
}

// drained waits until every event has had its effects.
func (r *run) drained(ctx context.Context) (lacking string) {
	for {
		if lacking = r.reader.lacking(r.h.Emitted); lacking == "" {
			return ""
		}
		if pause(ctx, 500*time.Millisecond) != nil {
			return lacking
		}
	}
}

// look asks the processes what they have until the owners have all
// partitions and the views have every event.
func (r *run) look(ctx context.Context) (lacking string) {
	for {
		claims, views, err := r.ask(ctx)
		if err == nil {
			r.h.Tables, r.h.Views = claims, views
			if lacking = r.atRest(); lacking == "" {
				return ""
			}
		} else {
			lacking = err.Error()
		}
		if pause(ctx, time.Second) != nil {
			if err == nil {
				return "" // they have answered, and are judged by it
			}
			return lacking
		}
	}
}

func (r *run) atRest() string {
	j := &judging{h: &r.h}
	r.reader.mu.Lock()
	r.h.Seen.Folds = map[string]map[string]string{}
	for topic, rows := range r.reader.seen.Folds {
		r.h.Seen.Folds[topic] = maps.Clone(rows)
	}
	r.reader.mu.Unlock()
	for i := range r.h.Tables { // stores are read when they are closed
		for k := range r.h.Tables[i].Claims {
			c := &r.h.Tables[i].Claims[k]
			c.Stored = c.Visited
		}
	}
	j.tables()
	if len(j.found) == 0 {
		return ""
	}
	return j.found[0].text
}

// ask has every process dump what it has.
func (r *run) ask(ctx context.Context) ([]tableHistory, map[string]map[string]row, error) {
	tables := []tableHistory{
		{Group: tallyGroup, Topic: tallyTable.Name()},
		{Group: secondGroup, Topic: secondTable.Name()},
	}
	views := map[string]map[string]row{}
	for _, p := range r.askAll() {
		d, err := awaitDump(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		views[p.name] = d.View
		for i, claims := range []map[int32]ownedRow{d.Tally, d.Second} {
			for part, rows := range claims {
				tables[i].Claims = append(tables[i].Claims, claim{Process: p.name, Partition: part, Visited: rows})
			}
		}
	}
	return tables, views, nil
}

// askAll signals the running processes and returns them.
func (r *run) askAll() (asked []*process) {
	r.nemesis.ask(func() {
		for _, p := range r.nemesis.fleet {
			_ = os.Remove(p.dumpFile()) // mostly there is none
			if p.status == running && p.signal(syscall.SIGUSR1) == nil {
				asked = append(asked, p)
			}
		}
	})
	return asked
}

func awaitDump(ctx context.Context, p *process) (dump, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		d, there, err := p.readDump()
		if there || err != nil {
			return d, err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return d, fmt.Errorf("%s does not show what it has: %w", p.name, err)
		}
	}
}

// gather collects what is judged.
func (r *run) gather() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		behind := r.readToEnd(ctx)
		if behind == nil {
			break
		}
		if pause(ctx, 200*time.Millisecond) == nil {
			continue
		}
		if len(r.h.Stuck) == 0 {
			r.h.Stuck = append(r.h.Stuck, behind.Error())
		}
		break
	}
	r.h.Seen, r.h.Bad = r.reader.close()
	r.result.polls, r.h.Back = r.watch.close()
	r.nemesis.ask(func() {
		r.h.Troubles = r.nemesis.troubles
		r.h.Stuck = append(r.h.Stuck, r.nemesis.stuck...)
		r.result.counts = maps.Clone(r.nemesis.counts)
	})
	r.result.inputs, r.result.outputs = len(r.h.Seen.Inputs), len(r.h.Seen.Effects)+len(r.h.Seen.Nth)+len(r.h.Seen.SecondEffects)
	return nil
}

// readToEnd says what keeps the checker from having read everything. With all
// processes ended, no transaction may be open.
func (r *run) readToEnd(ctx context.Context) error {
	topics := []string{eventsTopic, effectsTopic, nthTopic, secondTopic, tallyTable.Name(), secondTable.Name()}
	ends, err := r.brokers.ends(ctx, highWatermark, topics...)
	if err != nil {
		return err
	}
	stable, err := r.brokers.ends(ctx, lastStable, topics...)
	if err != nil {
		return err
	}
	for topic, parts := range ends {
		for p, end := range parts {
			if at := stable[topic][p]; at < end {
				return fmt.Errorf("a transaction is open in %s/%d from %d on, the log ends at %d", topic, p, at, end)
			}
		}
	}
	return r.reader.reached(ends)
}

// close ends what runs, in any state of the run.
func (r *run) close() {
	var errs []error
	if r.nemesis != nil {
		r.nemesis.close()
	}
	if r.load != nil {
		r.load.stop()
		errs = append(errs, r.load.close())
	}
	if r.reader != nil {
		r.reader.close()
	}
	if r.watch != nil {
		r.watch.close()
	}
	if r.client != nil {
		errs = append(errs, r.client.Close())
	}
	if r.brokers != nil {
		r.brokers.close()
	}
	if r.cluster != nil {
		r.cluster.Close()
	}
	if r.proxies != nil {
		r.proxies.close()
	}
	if err := errors.Join(errs...); err != nil {
		r.sayf("close: %v", err)
	}
}
