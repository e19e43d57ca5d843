package rows

const pageLen = 512

// changes lists the entries that have changed in the current version, in the
// order of first change. It grows by pages, so that no call copies it.
type changes struct {
	pages []*[pageLen]ref
	n     int
}

// add appends r and returns its number.
func (c *changes) add(r ref) uint32 {
	page := c.n / pageLen
	if page == len(c.pages) {
		c.pages = append(c.pages, new([pageLen]ref))
	}
	c.pages[page][c.n%pageLen] = r
	c.n++
	return uint32(c.n - 1)
}

func (c *changes) at(n int) ref { return c.pages[n/pageLen][n%pageLen] }

// move says that the entry with number n stands at r now.
func (c *changes) move(n uint32, r ref) { c.pages[n/pageLen][n%pageLen] = r }

// reset empties the list. It keeps memory for a version that is twice as
// large, not what one exceptional version needed.
func (c *changes) reset() {
	keep := min(len(c.pages), 2*(c.n/pageLen+1))
	clear(c.pages[keep:])
	c.pages = c.pages[:keep]
	c.n = 0
}

func (c *changes) bytes() int { return len(c.pages)*pageLen*8 + cap(c.pages)*8 }
