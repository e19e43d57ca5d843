package rows

// ageEvery is how many versions pass between two calls of age. With it, age
// comes round to each chunk long before a version is half of all numbers old,
// where after would be wrong: 2^31/4096 chunks of 256 KiB are 128 GiB.
const ageEvery = 4096

// after reports whether version a is later than b. Numbers wrap around, so it
// holds for versions that are less than half of all numbers apart.
func after(a, b uint32) bool { return int32(a-b) > 0 }

// clean reports whether the store holds what a live entry says. Version 0
// means that it always did.
func (t *Table) clean(e row) bool {
	return e.meta()&flagChanged == 0 && (e.mark() == 0 || !after(e.mark(), t.cleaned))
}

// age makes the clean entries of the next chunk clean for ever, so that their
// versions can be used again.
func (t *Table) age() {
	if t.aged++; int(t.aged) >= len(t.arena.chunks) {
		t.aged = 1
	}
	if int(t.aged) == len(t.arena.chunks) {
		return // no chunk at all
	}
	t.arena.each(t.aged, func(_ ref, e row) bool {
		if t.clean(e) {
			e.setMark(0)
		}
		return true
	})
}
