package debuginfo

// eachRange calls f for the ranges of code of an entry, given by its first
// and last address or by a list.
func (u *unit) eachRange(low, high, ranges value, f func(lo, hi uint64)) {
	live := func(lo, hi uint64) {
		if lo < hi && lo >= u.file.src.Lowest {
			f(lo, hi)
		}
	}
	if ranges.present() {
		u.rangeList(ranges, live)
		return
	}
	lo, ok := u.address(low)
	if !ok {
		return
	}
	if size, ok := high.constant(); ok {
		live(lo, lo+size)
	} else if hi, ok := u.address(high); ok {
		live(lo, hi)
	}
}

func (u *unit) rangeList(v value, f func(lo, hi uint64)) {
	off, ok := v.offset()
	switch {
	case u.version < 5 && ok:
		u.oldRanges(off+u.rangesBase, f)
	case v.form == formRnglistx && v.u < maxIndex:
		n := int(u.word)
		c := cursor{b: u.rangesFile.sections[secRnglists].from(u.rnglistsBase+v.u*uint64(n), n), big: u.big}
		if rel := c.uint(n); !c.bad {
			u.newRanges(u.rnglistsBase+rel, f)
		}
	case ok:
		u.newRanges(off, f)
	}
}

// oldRanges reads a list of .debug_ranges (DWARF 4, section 2.17.3). Ranges
// are given in order; a list that is read twice, because the first bytes did
// not hold all of it, gives none twice.
func (u *unit) oldRanges(off uint64, f func(lo, hi uint64)) {
	n, given := int(u.addrSize), 0
	largest := ^uint64(0) >> (64 - 8*n)
	u.rangesFile.grow(secRanges, off, 512, func(c *cursor) bool {
		base := u.low
		for i := 0; ; i++ {
			lo, hi := c.uint(n), c.uint(n)
			switch {
			case c.bad:
				return false
			case lo == 0 && hi == 0:
				return true
			case lo == largest:
				base = hi
			case i >= given:
				f(base+lo, base+hi)
				given = i + 1
			}
		}
	})
}

// newRanges reads a list of .debug_rnglists (DWARF 5, section 7.25).
func (u *unit) newRanges(off uint64, f func(lo, hi uint64)) {
	const (
		end, baseAddressx, startxEndx, startxLength    = 0, 1, 2, 3
		offsetPair, baseAddress, startEnd, startLength = 4, 5, 6, 7
	)
	n, given := int(u.addrSize), 0
	u.rangesFile.grow(secRnglists, off, 256, func(c *cursor) bool {
		base := u.low
		for i := 0; ; i++ {
			var lo, hi uint64
			switch c.u8() {
			case end:
				return !c.bad
			case baseAddressx:
				base, _ = u.indexedAddress(c.uleb())
			case startxEndx:
				lo, _ = u.indexedAddress(c.uleb())
				hi, _ = u.indexedAddress(c.uleb())
			case startxLength:
				lo, _ = u.indexedAddress(c.uleb())
				hi = lo + c.uleb()
			case offsetPair:
				lo = base + c.uleb()
				hi = base + c.uleb()
			case baseAddress:
				base = c.uint(n)
			case startEnd:
				lo, hi = c.uint(n), c.uint(n)
			case startLength:
				lo = c.uint(n)
				hi = lo + c.uleb()
			default:
				c.bad = true
			}
			if c.bad {
				return false
			}
			if i >= given && hi > lo {
				f(lo, hi)
				given = i + 1
			}
		}
	})
}
