package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// heartbeat says in whose name heartbeats are sent.
type heartbeat struct {
	memberID   string
	generation int32
}

// Partitions move in two rounds, and have no owner between them. So a member
// that has just adopted an assignment listens more closely for the next
// rebalance: eagerBeats times in an interval, for eagerIntervals of them.
const (
	eagerBeats     = 8
	eagerIntervals = 2
)

// beat sends heartbeats until stay ends. It reports what run must know and
// keeps the lease itself.
func (m *saramaMember) beat() {
	trouble := newBackoff("heartbeats of group "+m.cfg.Group, m.d.clock, m.d.log)
	wait := m.cfg.HeartbeatInterval
	step := max(wait/eagerBeats, time.Millisecond)
	for waited := step; m.d.clock.Sleep(m.stay, min(step, wait)) == nil; waited += step {
		if waited < wait && !m.eager() {
			continue
		}
		wait, waited = m.cfg.HeartbeatInterval, 0
		hb, ok := m.pulse()
		if !ok {
			continue
		}
		code, err := m.sendHeartbeat(hb)
		if err == nil && retriableCode(code) {
			m.moved(code)
			err = kerror(code)
		}
		if retriable(err) {
			wait = min(wait, trouble.failed(err))
			continue
		}
		trouble.reset()
		if err == nil {
			err = kerror(code)
		}
		if err != nil && m.stay.Err() == nil {
			m.mail.Put(func() { m.beaten(hb, err) })
		}
	}
}

// eager reports whether another rebalance may follow soon.
func (m *saramaMember) eager() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holds && m.d.clock.Now().Before(m.fresh)
}

// pulse is the heartbeat to send now.
func (m *saramaMember) pulse() (heartbeat, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beating, m.beating.memberID != ""
}

// sendHeartbeat waits for a third of the session only: after that another
// connection, or another coordinator, may still be in time.
func (m *saramaMember) sendHeartbeat(hb heartbeat) (sarama.KError, error) {
	patience := max(m.cfg.SessionTimeout/3, m.cfg.HeartbeatInterval)
	ctx, cancel := context.WithTimeout(m.stay, patience)
	defer cancel()
	var answer *sarama.HeartbeatResponse
	sent := m.d.clock.Now()
	err := m.ask(ctx, m.beats, func(b *sarama.Broker) (err error) {
		sent = m.d.clock.Now()
		answer, err = b.Heartbeat(&sarama.HeartbeatRequest{
			Version: 4, GroupId: m.cfg.Group, GenerationId: hb.generation, MemberId: hb.memberID, GroupInstanceId: m.instance(),
		})
		return err
	})
	if err != nil {
		if ctx.Err() != nil && m.stay.Err() == nil {
			err = fmt.Errorf("no answer within %s", patience)
		}
		return sarama.ErrNoError, err
	}
	if answer.Err == sarama.ErrNoError || answer.Err == sarama.ErrRebalanceInProgress {
		m.extendFor(hb, sent)
	}
	return answer.Err, nil
}

// beaten acts on an error that a heartbeat was answered with.
func (m *saramaMember) beaten(hb heartbeat, err error) {
	if hb.memberID != m.place.id || m.state == memberEnded {
		return
	}
	code, _ := codeOf(err)
	waiting := m.state == memberJoining || m.state == memberSyncing
	err = m.groupError(err)
	switch {
	case code == sarama.ErrRebalanceInProgress:
		if m.state == memberStable && hb.generation == m.place.generation {
			m.join()
		}
	case code == sarama.ErrIllegalGeneration:
		if waiting || hb.generation != m.place.generation {
			return
		}
		m.loseAndJoin(err)
	case code == sarama.ErrUnknownMemberId:
		if !waiting { // else the answer to the join says so too
			m.setID("")
		}
		m.loseAndJoin(err)
	case code == sarama.ErrFencedInstancedId && waiting && m.place.unproven():
		// The answer to what is out says so too.
	case m.doubted(err): // pausing: a join is due
	case Permanent(err):
		m.refused(err)
	}
}

// loseAndJoin starts anew, unless a join is out or due anyway.
func (m *saramaMember) loseAndJoin(err error) {
	m.lost(err)
	if m.state == memberStable {
		m.later(err)
	}
}

// beatAs makes the following heartbeats speak for a generation that was
// just joined.
func (m *saramaMember) beatAs(memberID string, generation int32) {
	now := m.d.clock.Now()
	m.mu.Lock()
	m.beating = heartbeat{memberID, generation}
	m.until = now.Add(m.cfg.SessionTimeout)
	until := m.until
	m.mu.Unlock()
	m.watchUntil(until)
}

// extend moves the lease after an answer to what was sent at a time.
func (m *saramaMember) extend(sent time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.extendLocked(sent)
}

// extendFor does so for a heartbeat, if it is still the member's.
func (m *saramaMember) extendFor(hb heartbeat, sent time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if hb.memberID == m.beating.memberID {
		m.extendLocked(sent)
	}
}

func (m *saramaMember) extendLocked(sent time.Time) {
	if end := sent.Add(m.cfg.SessionTimeout); end.After(m.lease) {
		m.lease = end
		if end.After(m.until) {
			m.until = end
		}
	}
}

// watchUntil arms the watch over the session. It rings when the session has
// ended if nothing is answered by then.
func (m *saramaMember) watchUntil(t time.Time) {
	if m.watch != nil {
		m.watch.Stop()
	}
	m.watch = m.d.clock.AfterFunc(t.Sub(m.d.clock.Now()), func() { m.mail.Put(m.watched) })
}

func (m *saramaMember) watched() {
	m.mu.Lock()
	beating, until := m.beating.memberID != "", m.until
	m.mu.Unlock()
	switch {
	case m.state == memberEnded || !beating:
	case m.d.clock.Now().Before(until):
		m.watchUntil(until)
	default:
		// The id is tried again: if only the network was away the group
		// still knows it, and need not wait for a ghost.
		m.loseAndJoin(m.groupError(fmt.Errorf("%w: no heartbeat answered for %s", ErrUnknownMember, m.cfg.SessionTimeout)))
	}
}
