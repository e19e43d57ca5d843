package assign

// settleClaims returns for each claimed task the members, by index, whose
// claim counts: those of the highest generation. More than one only if two
// members claim one task in the same generation, which a correct group never
// has.
func settleClaims(members []Member) map[Task][]int {
	holders := map[Task][]int{}
	for i := range members {
		m := &members[i]
		for _, t := range m.Claims {
			h := holders[t]
			switch {
			case len(h) == 0 || members[h[0]].Generation < m.Generation:
				holders[t] = append(h[:0], i)
			case h[len(h)-1] != i && members[h[0]].Generation == m.Generation:
				holders[t] = append(h, i)
			}
		}
	}
	return holders
}
