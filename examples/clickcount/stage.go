package main

import (
	"fmt"
	"sync"
	"time"
)

// stage looks at everything that plays and makes pictures of it. The story
// sets the scene; shot is called by the painter alone.
type stage struct {
	start   time.Time
	clicker *clicker

	mu      sync.Mutex
	ranking *ranking // nil: there is no view yet
	url     string   // of the API, once there is one
	child   *child   // nil: there is no processor

	// Owned by the painter.
	total meter
	parts [partitions]part
}

// part is what the painter remembers of a partition.
type part struct {
	meter
	position int64
}

const shownRanks = 20

func (s *stage) setRanking(r ranking, url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ranking, s.url = &r, url
}

func (s *stage) setChild(c *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child = c
}

func (s *stage) shot() picture {
	s.mu.Lock()
	child, ranking, url := s.child, s.ranking, s.url
	s.mu.Unlock()
	now := time.Now()
	p := picture{
		elapsed: now.Sub(s.start), url: url, clicked: s.clicker.emitted.Load(), processor: "down", view: "waiting",
		partitions: make([]partitionPicture, partitions),
	}
	for i := range p.partitions {
		p.partitions[i].state = "down"
	}
	if child != nil {
		s.look(&p, child)
	}
	for i := range p.partitions {
		position := s.parts[i].position
		p.partitions[i].rate = s.parts[i].read(now, position)
		p.partitions[i].lag = max(0, s.clicker.ends[i].Load()-position)
		p.counted += position
	}
	p.rate = s.total.read(now, p.counted)
	if ranking != nil {
		p.view = fmt.Sprintf("%v, %d behind", ranking.view.State(), ranking.view.Lag())
		p.top, _ = ranking.top(shownRanks) // none before the view is ready
	}
	return p
}

// look adds what the processor says of itself.
func (s *stage) look(p *picture, c *child) {
	r := c.report()
	p.processor = "starting"
	if r.Status != "" {
		p.processor = r.Status
	}
	p.processor += fmt.Sprintf(", pid %d", c.pid())
	for i := range p.partitions {
		p.partitions[i].state = "waiting"
	}
	for _, x := range r.Partitions {
		if int(x.Partition) < partitions {
			p.partitions[x.Partition].state = x.State
			s.parts[x.Partition].position = x.Position
		}
	}
}
