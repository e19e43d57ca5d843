package badgerstore

import (
	"fmt"
	"strings"

	"go.uber.org/zap"
)

// badgerLog hands Badger's lines to zap. What Badger calls information is
// about its own insides: debug.
type badgerLog struct{ l *zap.Logger }

func (b badgerLog) Errorf(f string, a ...any) {
	b.l.Error("badger: " + strings.TrimSpace(fmt.Sprintf(f, a...)))
}

func (b badgerLog) Warningf(f string, a ...any) {
	b.l.Warn("badger: " + strings.TrimSpace(fmt.Sprintf(f, a...)))
}

func (b badgerLog) Infof(f string, a ...any) { b.debug(f, a) }

func (b badgerLog) Debugf(f string, a ...any) { b.debug(f, a) }

func (b badgerLog) debug(f string, a []any) {
	if e := b.l.Check(zap.DebugLevel, ""); e != nil {
		e.Message = "badger: " + strings.TrimSpace(fmt.Sprintf(f, a...))
		e.Write()
	}
}
