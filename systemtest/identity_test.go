package systemtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/systemtest/fakekafka"
)

// forgetful is a coordinator that has lost a static member: a heartbeat tells
// it so, and when it has joined again the group moves before it has its
// assignment. The next coordinator knows the identity by the older id, so that
// the newer one is fenced wherever it shows.
type forgetful struct {
	fake *fakekafka.Cluster
	sync *kerr.Error // what the sync of an id that will be forgotten is answered with

	mu    sync.Mutex
	lost  string          // guarded by mu; the id that the member had
	left  int             // guarded by mu; how many ids will be forgotten yet
	gone  map[string]bool // guarded by mu; ids that were
	joins []string        // guarded by mu; the ids in joins, since the loss
}

func (f *forgetful) script() {
	on := func(key kmsg.Key, answer func(kmsg.Request) kmsg.Response) {
		f.fake.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
			f.fake.KeepControl()
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.lost == "" {
				return nil, nil, false
			}
			resp := answer(req)
			return resp, nil, resp != nil
		})
	}
	on(kmsg.Heartbeat, func(req kmsg.Request) kmsg.Response {
		id, resp := req.(*kmsg.HeartbeatRequest).MemberID, req.ResponseKind().(*kmsg.HeartbeatResponse)
		switch {
		case id == f.lost:
			resp.ErrorCode = kerr.UnknownMemberID.Code
		case f.gone[id]:
			resp.ErrorCode = kerr.FencedInstanceID.Code
		default:
			return nil
		}
		return resp
	})
	on(kmsg.JoinGroup, func(req kmsg.Request) kmsg.Response {
		id := req.(*kmsg.JoinGroupRequest).MemberID
		f.joins = append(f.joins, id)
		if !f.gone[id] {
			return nil
		}
		resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
		resp.ErrorCode = kerr.FencedInstanceID.Code
		return resp
	})
	on(kmsg.SyncGroup, func(req kmsg.Request) kmsg.Response {
		id := req.(*kmsg.SyncGroupRequest).MemberID
		if f.left == 0 {
			return nil
		}
		f.left--
		f.gone[id] = true
		resp := req.ResponseKind().(*kmsg.SyncGroupResponse)
		resp.ErrorCode = f.sync.Code
		return resp
	})
}

// start makes the member lose its id, and n that it gets afterwards.
func (f *forgetful) start(id string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost, f.left = id, n
}

// An id that the group has given out and forgotten is no sign of another
// process: the member finds back by its identity.
func TestMemberWhoseNewIdWasForgottenJoinsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		sync *kerr.Error
		ids  int // that are forgotten
		ends bool
	}{
		"the coordinator moves":               {kerr.NotCoordinator, 1, false},
		"the coordinator moves again":         {kerr.NotCoordinator, 3, false},
		"the new one is not ready":            {kerr.CoordinatorLoadInProgress, 1, false},
		"the sync is fenced":                  {kerr.FencedInstanceID, 1, false},
		"another process insists on being it": {kerr.FencedInstanceID, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			fake := fakekafka.Start(t, fakekafka.Config{})
			f := &forgetful{fake: fake, sync: c.sync, gone: map[string]bool{}}
			f.script()
			assigned, lost := make(chan kafka.Assignment, 16), make(chan error, 16)
			m, err := broker{brokers: fake.Brokers()}.client(t).Driver().NewMember(kafka.MemberConfig{
				Group: "g", InstanceID: "i", Protocol: "p", HeartbeatInterval: 50 * time.Millisecond, SessionTimeout: 10 * time.Second,
				Subscribe: func() kafka.Subscription { return kafka.Subscription{Topics: []string{"in"}} },
				Plan: func(context.Context, []kafka.GroupMember) (map[string]kafka.Share, error) {
					return map[string]kafka.Share{}, nil
				},
				Assigned: func(a kafka.Assignment) { assigned <- a },
				Lost:     func(err error) { lost <- err },
			})
			if err != nil {
				t.Fatal(err)
			}
			m.Start()
			first := receive(t, assigned)
			f.start(first.MemberID, c.ids)
			if err := receive(t, lost); !errors.Is(err, kafka.ErrUnknownMember) {
				t.Fatalf("lost: %v", err)
			}
			if c.ends {
				if err := receive(t, lost); !errors.Is(err, kafka.ErrFencedInstance) {
					t.Fatalf("lost: %v", err)
				}
			} else if a := receive(t, assigned); a.MemberID == first.MemberID || a.Rejoined {
				t.Errorf("assigned %+v after %+v", a, first)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			for i, id := range f.joins {
				if id != "" {
					t.Errorf("join %d of %d names %s, which no coordinator need know", i, len(f.joins), id)
				}
			}
			select {
			case err := <-lost:
				t.Errorf("lost once more: %v", err)
			default:
			}
		})
	}
}

// receive waits for one value.
func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(20 * time.Second):
		t.Fatal("it does not come")
	}
	return v
}
