package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/view"
)

// options are what the command line says.
type options struct {
	brokers  []string      // none: an embedded one
	forever  bool          // round after round
	duration time.Duration // of the clicking in a round
	rate     int           // clicks a second
	listen   string        // address of the API
}

const (
	// downtime is how long the processor stays dead in each round.
	downtime = 2 * time.Second
	// patience is how long a start and the catching up may take.
	patience = 15 * time.Second
	// stopPatience is how long the end may take, and hurriedPatience how long
	// after an interruption.
	stopPatience    = 5 * time.Second
	hurriedPatience = 600 * time.Millisecond
)

// demo is the story: what plays, and what happens to it.
type demo struct {
	opts  options
	feed  *feed
	stage *stage
	names names

	config  counterConfig
	client  *kafka.Client
	clicker *clicker
	view    *view.View[Row]
	child   *child // nil while there is none
	made    bool   // the topic of the clicks may exist

	stopServices func() error // nil before they are started
}

// run plays until all rounds are over, something is wrong, or ctx ends. What
// it started goes on until stop.
func (d *demo) run(ctx context.Context) error {
	if err := d.makeTopic(ctx); err != nil {
		return err
	}
	if err := d.startProcessor(ctx); err != nil {
		return err
	}
	if err := d.startServices(ctx); err != nil {
		return err
	}
	for round := 1; ; round++ {
		if err := d.round(ctx); err != nil {
			return err
		}
		if !d.opts.forever {
			return nil
		}
		d.feed.sayf("round %d is over, the next one begins", round)
	}
}

// makeTopic makes the topic of the clicks. The table's is made by the
// processor.
func (d *demo) makeTopic(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no broker answers after %v", patience))
	defer cancel()
	d.feed.sayf("brokers: %s", strings.Join(d.config.Brokers, ", "))
	err := d.client.EnsureTopics(ctx, kafka.TopicSpec{Name: d.names.clicks().Name(), Partitions: partitions})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.made = err == nil
	return err
}

// startServices starts the view and the API on it. The table's topic is there
// by now: the processor has made it.
func (d *demo) startServices(ctx context.Context) error {
	ranking := ranking{d.view}
	api, err := newAPI(ctx, d.opts.listen, ranking)
	if err != nil {
		return err
	}
	d.feed.sayf("the API answers %s/top and %s/users/{name}", api.url(), api.url())
	services, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)                             // one error, also if nobody asks for it
	go func() { ended <- reka.Run(services, d.view, api) }() // ends when stop calls the function below, which waits
	d.stopServices = func() error { cancel(); return <-ended }
	d.stage.setRanking(ranking, api.url())
	return nil
}

// round is: click, kill the processor half way, bring it back, compare.
func (d *demo) round(ctx context.Context) error {
	clickCtx, cancel := context.WithCancel(ctx)
	clicked := make(chan error, 1)
	go func() { clicked <- d.clicker.run(clickCtx, d.opts.duration) }() // ends with clickCtx; received below
	err := d.killHalfWay(ctx)
	if err != nil {
		cancel()
	}
	err = errors.Join(err, <-clicked)
	cancel()
	if err != nil {
		return err
	}
	d.feed.sayf("the clicking is over: %s clicks, all acknowledged", number(d.clicker.emitted.Load()))
	return d.compare(ctx)
}

func (d *demo) killHalfWay(ctx context.Context) error {
	if err := d.wait(ctx, d.opts.duration/2); err != nil {
		return err
	}
	pid := d.child.pid()
	d.child.kill()
	d.stage.setChild(nil)
	d.child = nil
	d.feed.sayf("the processor, pid %d, was killed (SIGKILL); the clicking goes on", pid)
	if err := d.wait(ctx, downtime); err != nil {
		return err
	}
	return d.startProcessor(ctx)
}

// startProcessor starts the counter process and waits until it counts.
func (d *demo) startProcessor(ctx context.Context) error {
	start := time.Now()
	c, err := startChild(d.config, d.feed.sayLine)
	if err != nil {
		return err
	}
	d.child = c
	d.stage.setChild(c)
	for c.report().Status != "serving" {
		if time.Since(start) > patience {
			return fmt.Errorf("the processor is not ready after %v", patience)
		}
		if err := d.wait(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	d.feed.sayf("the processor serves, %.1f s after its start, pid %d", time.Since(start).Seconds(), c.pid())
	return nil
}

// wait waits for d, and fails if the processor ends meanwhile.
func (d *demo) wait(ctx context.Context, t time.Duration) error {
	var gone chan struct{} // nil: none to go
	if d.child != nil {
		gone = d.child.ended
	}
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-gone:
		return fmt.Errorf("the processor ended by itself: %w", d.child.err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// compare waits until every count equals the truth.
func (d *demo) compare(ctx context.Context) error {
	start := time.Now()
	truth := d.clicker.truth
	for {
		counts, err := ranking{d.view}.counts()
		if err == nil {
			wrong, examples := truth.compare(counts)
			if wrong == 0 {
				d.feed.sayf("EQUAL: the counts of all %d users are the truth, %s clicks in all",
					len(truth), number(truth.total()))
				return nil
			}
			err = fmt.Errorf("DIFFERENT: %d of %d counts are wrong: %v", wrong, len(truth), examples)
		}
		if time.Since(start) > patience {
			return err
		}
		if waited := d.wait(ctx, 50*time.Millisecond); waited != nil {
			return errors.Join(waited, err)
		}
	}
}

// stop ends everything that run has started. Clicks that an interruption
// leaves in the emitter are lost: nobody will compare them.
func (d *demo) stop(patience time.Duration) error {
	var err error
	if d.child != nil {
		err = d.child.stop(patience)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience/4)
	defer cancel()
	_ = d.clicker.emitter.Close(ctx)
	if d.stopServices != nil {
		err = errors.Join(err, d.stopServices())
	}
	return err
}

// prepare makes everything that dials later.
func prepare(opts options, f *feed, brokers []string, dir string) (*demo, error) {
	n := names{strconv.FormatInt(time.Now().UnixNano(), 36)}
	client, err := kafka.NewClient(brokers, kafka.WithLogger(f.logger()))
	if err != nil {
		return nil, err
	}
	d := &demo{
		opts: opts, feed: f, names: n, client: client,
		config: counterConfig{Brokers: brokers, Run: n.run, Dir: filepath.Join(dir, "processor")},
	}
	d.clicker, err = newClicker(client, n, opts.rate)
	if err == nil {
		d.view, err = view.New(client, n.counts(), view.WithStorage(storage.Memory()))
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	d.stage = &stage{start: f.start, clicker: d.clicker}
	return d, nil
}

// clean deletes the run's topics from a cluster that is not ours.
func (d *demo) clean() {
	if !d.made {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), hurriedPatience/2)
	defer cancel()
	if err := d.client.Driver().Admin().DeleteTopics(ctx, d.names.clicks().Name(), d.names.counts().Name()); err != nil {
		fmt.Fprintln(os.Stderr, "the topics of this run are left behind:", err)
	}
}
