package processor

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/rekastream/reka/kafka"
)

// guard keeps partitions from waiting for transactions of processes that are
// gone: a former owner's pending offsets hold up the takeover, its open
// transaction at the end of a changelog holds up the restore. As long as
// some partition is not running yet it looks, every guardInterval, who has
// something open there, and fences those who are not members by the newest
// assignment. The marks name most of them before (takeover.go); this finds the
// rest: one that died with its claim pending, one whose session ended later,
// one before the writer that a mark names.
//
// It saves time and nothing else. Where brokers cannot tell, or may not, the
// transaction timeout ends what is open.
type guard struct {
	timer  kafka.Timer
	busy   bool // a look is under way
	failed bool // asking failed, and it was said
}

const guardInterval = time.Second

// keepGuard arms the next look if there is a reason for one.
func (s *session) keepGuard() {
	if s.txn == nil || s.guard.timer != nil || s.guard.busy || s.stopping || !s.waits() {
		return
	}
	s.guard.timer = s.clock.AfterFunc(guardInterval, func() { s.box.Put(message{kind: msgGuard}) })
}

// waits reports whether some partition is not running yet.
func (s *session) waits() bool {
	for _, sl := range s.slots {
		if !sl.running && !sl.closing {
			return true
		}
	}
	return false
}

// guardLook begins a look, on the errand goroutine.
func (s *session) guardLook() {
	s.guard.timer = nil
	if s.stopping || !s.waits() {
		return
	}
	var changelogs []kafka.TopicPartition
	for _, sl := range s.slots {
		if sl.running || sl.closing || sl.task == nil {
			continue
		}
		for _, st := range sl.of.spec.Stores {
			if st.Changelog != "" {
				changelogs = append(changelogs, kafka.TopicPartition{Topic: st.Changelog, Partition: sl.id.Partition})
			}
		}
	}
	s.guard.busy = s.errands.Do(func() {
		err := s.fenceBlockers(s.ctx, changelogs)
		s.box.Put(message{kind: msgGuarded, err: err})
	})
}

// guarded ends a look.
func (s *session) guarded(err error) {
	s.guard.busy = false
	if err == nil || s.guard.failed || s.ctx.Err() != nil {
		return
	}
	s.guard.failed = true
	s.p.log.Warn("cannot tell who has transactions open; what a process that is gone left open ends with its transaction timeout",
		zap.String("group", s.p.graph.group), zap.Duration("timeout", s.p.cfg.transaction), zap.Error(err))
}

// fenceBlockers fences the processes of this group that are gone and have
// something open: offsets of the group, or rows in changelogs.
func (s *session) fenceBlockers(ctx context.Context, changelogs []kafka.TopicPartition) error {
	admin := s.p.client.Driver().Admin()
	found, err := admin.GroupWriters(ctx, s.p.graph.group)
	if len(changelogs) > 0 {
		in, err2 := admin.Writers(ctx, changelogs...)
		err = errors.Join(err, err2)
		for _, w := range in {
			found = append(found, w...)
		}
	}
	fenced := map[string]bool{}
	for _, w := range found {
		if process := s.processOf(w.TransactionalID); process != "" && !fenced[process] && s.departed(process) {
			fenced[process] = true
			s.fence(ctx, process)
		}
	}
	return err
}

// processOf returns the process that writes under a transactional id of this
// group, or nothing. Only ids that cannot be another group's count: no
// process id of ours has a hyphen.
func (s *session) processOf(id string) string {
	process, ok := strings.CutPrefix(id, s.p.graph.group+"-")
	process, lane := strings.CutSuffix(process, "-0")
	if !ok || !lane || strings.Contains(process, "-") {
		return ""
	}
	return process
}
