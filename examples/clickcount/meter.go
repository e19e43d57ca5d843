package main

import "time"

// meter turns a counter's readings into a rate.
type meter struct {
	at    time.Time
	value int64
	rate  float64 // a second
}

// smoothing is the time over which readings are averaged.
const smoothing = time.Second

// read takes a reading. A counter that goes back has no rate for that time.
func (m *meter) read(now time.Time, value int64) float64 {
	d := now.Sub(m.at)
	if m.at.IsZero() || d <= 0 {
		m.at, m.value = now, value
		return m.rate
	}
	current := float64(max(0, value-m.value)) / d.Seconds()
	weight := min(1, float64(d)/float64(smoothing))
	m.rate += weight * (current - m.rate)
	m.at, m.value = now, value
	return m.rate
}
