package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// feed collects what has happened, in words.
type feed struct {
	start time.Time

	mu     sync.Mutex
	events []string
}

const keptEvents = 1_000

func newFeed() *feed { return &feed{start: time.Now()} }

func (f *feed) sayf(format string, args ...any) {
	at := fmt.Sprintf("%5.1f s  ", time.Since(f.start).Seconds())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, at+fmt.Sprintf(format, args...))
	if len(f.events) > 2*keptEvents {
		f.events = append(f.events[:0], f.events[len(f.events)-keptEvents:]...)
	}
}

func (f *feed) sayLine(line string) { f.sayf("%s", line) }

// last returns the last n events.
func (f *feed) last(n int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.events[max(0, len(f.events)-n):]...)
}

// take returns all events and forgets them.
func (f *feed) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	return events
}

// logger returns a logger whose warnings become events, so that they do not
// cut through the picture.
func (f *feed) logger() *zap.Logger {
	enc := zap.NewDevelopmentEncoderConfig()
	enc.TimeKey = zapcore.OmitKey
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(enc), zapcore.AddSync(feedWriter{f}), zap.WarnLevel))
}

type feedWriter struct{ *feed }

// Write takes one log entry, of one line or more.
func (w feedWriter) Write(p []byte) (int, error) {
	first, _, _ := strings.Cut(string(p), "\n")
	w.sayLine(first)
	return len(p), nil
}
