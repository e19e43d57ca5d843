package processor

import "maps"

// counts are partition counts by topic; nil: not known yet.
type counts map[string]int32

func (c counts) clone() counts { return maps.Clone(c) }

// tellCounts tells the processor how many partitions its topics have. The map
// is made anew each time: who has the former one keeps it.
func (s *session) tellCounts() {
	now := counts{}
	for name, t := range s.spec.topics {
		now[name] = t.Partitions
	}
	for _, sg := range s.subgraphs {
		for _, name := range sg.spec.Copartitioned() {
			now[name] = max(now[name], sg.partitions)
		}
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.counts = now
}
