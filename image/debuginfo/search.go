package debuginfo

// search finds the functions and inlined calls of a unit that cover queries.
func (u *unit) search(qs []Query, scopes scopeQueries) {
	w := walker{u: u.withCode(), qs: qs, scopes: scopes}
	if w.u.walk(&w) || w.missing(u) == 0 {
		return
	}
	// GNU C's nested functions stand in the entry of the function around
	// them, where the first search did not look.
	w.deep = true
	w.u.walk(&w)
}

// missing counts queries of a unit's code that no function covers.
func (w *walker) missing(u *unit) (n int) {
	for _, r := range u.ranges {
		for i := firstFrom(w.qs, r[0]); i < len(w.qs) && w.qs[i].Addr < r[1]; i++ {
			if w.qs[i].sub.u == nil {
				n++
			}
		}
	}
	return n
}

// walker is a search in one unit.
type walker struct {
	u      *unit
	qs     []Query
	scopes scopeQueries
	deep   bool // into everything

	levels []level
	values scopeValues
}

// level is what is around the entries of one depth.
type level struct {
	inlined *Inlined
	inside  bool // code that was asked for
	skip    bool // nothing below is asked for
}

// maxDepth bounds the depth of entries; compilers stay below 100.
const maxDepth = 1 << 12

// walk goes through the entries of the unit; it says false if it stopped at
// damage.
func (u *unit) walk(w *walker) bool {
	table := u.file.abbrevs(u.abbrev, u.encoding)
	if table == nil {
		return false
	}
	c := u.at(u.die)
	w.levels = append(w.levels[:0], level{})
	start := c.off
	for !c.bad && c.left() > 0 {
		off := u.off + uint64(c.off)
		code := c.uleb()
		if code == 0 {
			if w.levels = w.levels[:len(w.levels)-1]; len(w.levels) <= 1 {
				break
			}
			continue
		}
		a := table.get(code)
		if a == nil || len(w.levels) > maxDepth {
			return false
		}
		w.entry(&c, a, off)
		if len(w.levels) <= 1 { // a unit without children
			break
		}
	}
	return u.file.spend(c.off-start+1) && !c.bad
}

// entry reads one entry: what it says if it is code that may be asked for,
// else nothing. It leaves the cursor at the next entry to read.
func (w *walker) entry(c *cursor, a *abbrev, off uint64) {
	top := w.levels[len(w.levels)-1]
	next := level{skip: true}
	if !top.skip {
		switch a.kind {
		case root, container:
			next = level{}
		case typ:
			next.skip = !w.deep
		case function, inlined, block:
			if a.hasCode && (a.kind == function || top.inside) {
				w.code(c, a, off, top)
				return
			}
			// A block without addresses is around those of its parent.
			if next = top; a.kind == function || !top.inside {
				next = level{skip: !w.deep}
			}
		}
	}
	w.pass(c, a, next)
}

// pass steps over an entry, and over its children if they are to be skipped
// and say where they end.
func (w *walker) pass(c *cursor, a *abbrev, next level) {
	start := c.off
	if a.fixed >= 0 {
		c.skip(uint64(a.fixed))
	} else {
		for _, s := range a.attrs {
			c.skipForm(s.form, w.u.encoding)
		}
	}
	if !a.children {
		return
	}
	if next.skip && a.sibling >= 0 && !c.bad {
		at := cursor{b: c.b, off: start + a.sibling, big: c.big}
		if to := at.u32(); !at.bad && uint64(to) >= uint64(c.off) && uint64(to) <= uint64(len(c.b)) {
			c.off = int(to)
			return
		}
	}
	w.levels = append(w.levels, next)
}

// scopeValues are the attributes of an entry with code.
type scopeValues struct {
	low, high, ranges  value
	origin             value
	callFile, callLine uint64
	sibling            uint64
}

// code reads an entry with addresses and notes what it says to the queries
// inside.
func (w *walker) code(c *cursor, a *abbrev, off uint64, top level) {
	v := &w.values
	*v = scopeValues{}
	for _, s := range a.attrs {
		switch s.at {
		case attrLowPC:
			v.low = c.value(s, w.u.encoding)
		case attrHighPC:
			v.high = c.value(s, w.u.encoding)
		case attrRanges:
			v.ranges = c.value(s, w.u.encoding)
		case attrAbstractOrigin:
			v.origin = c.value(s, w.u.encoding)
		case attrCallFile:
			v.callFile, _ = c.value(s, w.u.encoding).constant()
		case attrCallLine:
			v.callLine, _ = c.value(s, w.u.encoding).constant()
		case attrSibling:
			v.sibling = c.value(s, w.u.encoding).u
		default:
			c.skipForm(s.form, w.u.encoding)
		}
	}
	next := level{inlined: top.inlined}
	if !c.bad {
		next.inside = w.note(a.kind, off, v, &next)
	}
	if !a.children {
		return
	}
	if !next.inside && !w.deep {
		if v.sibling >= uint64(c.off) && v.sibling <= uint64(len(c.b)) {
			c.off = int(v.sibling)
			return
		}
		next.skip = true
	}
	w.levels = append(w.levels, next)
}

// note gives the queries in the ranges of an entry what it says: of several
// functions or calls that claim an address, the smallest range is right.
func (w *walker) note(k kind, off uint64, v *scopeValues, next *level) (hit bool) {
	if k == function {
		next.inlined = nil
	}
	var call *Inlined
	w.u.eachRange(v.low, v.high, v.ranges, func(lo, hi uint64) {
		for i := firstFrom(w.qs, lo); i < len(w.qs) && w.qs[i].Addr < hi; i++ {
			q := &w.qs[i]
			hit = true
			if k == block || hi-lo > q.size {
				continue
			}
			q.size = hi - lo
			if k == function {
				q.sub, q.Inlined = entry{w.u, off}, nil
				continue
			}
			if call == nil {
				call = w.call(v, next.inlined)
			}
			q.Inlined = call
		}
	})
	if call != nil {
		next.inlined = call
	}
	return hit
}

func (w *walker) call(v *scopeValues, outer *Inlined) *Inlined {
	call := &Inlined{Line: int(v.callLine & 0x7fffffff), Outer: outer}
	if lines := w.u.lineTable(); lines != nil {
		call.File = lines.file(v.callFile)
	}
	if e := w.u.reference(v.origin); e.u != nil {
		call.Function = e.u.file.describe(e, w.scopes)
	} else {
		call.Function = &Function{}
	}
	return call
}
