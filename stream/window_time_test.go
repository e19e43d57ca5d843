package stream_test

import (
	"testing"

	"github.com/rekastream/reka/window"
)

func TestTumblingCountsUpdatesAndFinals(t *testing.T) {
	w := window.Tumbling(ms(2), ms(1))
	s := playWindows(t, w, counter())
	s.send("in", "k:v@0", "k:v@1", "k:v@2", "k:v@1", "k:v@0")
	s.shows(w, "k[0-2]=1@0 k[0-2]=2@1 k[2-4]=1@2 k[0-2]=3@1 k[0-2]=4@1", "")
	s.send("in", "k:v@5")
	s.shows(w, "k[4-6]=1@5", "k[0-2]=4@1 k[2-4]=1@2")
	s.send("in", "k:late@0")
	s.shows(w, "", "")
	s.wants("late", "k:late@0")
}
