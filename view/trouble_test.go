package view_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/tester"
	"github.com/rekastream/reka/view"
)

func TestStorageThatFailsEndsTheView(t *testing.T) {
	s := newSetup(t, 1)
	s.tt.Fail(tester.Fault{Op: tester.OpApply, Instance: "app", Do: tester.Error(&storage.Error{Place: "/data", Err: storage.ErrFull})})
	s.start(view.WithFlush(1, time.Hour))
	s.in.Send("a", 1)
	s.tt.Settle()
	if err := s.app.Stop(); !errors.Is(err, storage.ErrFull) {
		t.Errorf("Run: %v", err)
	}
	if err := s.v.WaitReady(t.Context()); !errors.Is(err, storage.ErrFull) {
		t.Errorf("WaitReady: %v", err)
	}
}

func TestKeysOfAnotherPartitionerAreFound(t *testing.T) {
	s := newSetup(t, 10, tester.WithPartitioner(kafka.FNV1a()))
	value, _ := counts.Codec().Append(nil, 1)
	s.tt.SendRaw("counts", 8, kafka.Record{Key: []byte("user-1"), Value: value, Timestamp: 1}) // as Java places it
	s.start()
	s.want("user-1", 1)
	if got := collect(t, s.v.All()); len(got) != 1 {
		t.Errorf("rows %v", got)
	}
}

func TestViewBesideOthersOnOneStorage(t *testing.T) {
	s := newSetup(t, 2)
	other := reka.NewTable("other", counts.Codec())
	tester.Input(s.tt, other).Send("b", 2)
	s.in.Send("a", 1)
	var second *view.View[int64]
	s.app = s.tt.Start("app", func(i *tester.Instance) ([]reka.Runner, error) {
		st := view.WithStorage(i.Storage())
		v1, err1 := view.New(i.Client(), counts, st)
		v2, err2 := view.New(i.Client(), other, st)
		s.v, second = v1, v2
		return []reka.Runner{v1, v2}, errors.Join(err1, err2)
	})
	s.want("a", 1)
	if n, ok, err := second.Get("b"); n != 2 || !ok || err != nil {
		t.Errorf("%d, %v, %v", n, ok, err)
	}
	if _, ok, err := second.Get("a"); ok || err != nil {
		t.Errorf("a row of the other table: %v, %v", ok, err)
	}
}
