package session

import "sort"

// mapping is a range of an address space that shows an object.
type mapping struct {
	start, end uint64  // [start, end)
	bias       uint64  // offset in the object = address - bias
	obj        *object // nil: no code (data mappings)
}

// space is the address space of one process at one time. After a fork two
// spaces share their slice until one of them changes.
type space struct {
	maps   []mapping // by start, not overlapping
	shared bool
	copied int    // mappings copied because of fork, see Session.unshare
	gen    uint32 // identifies this state of the space in the location cache

	// before is what was mapped before exec. Until the thread is back in user
	// mode, the user part of its callchains is still the old program's call of
	// exec.
	before []mapping
}

// find returns the mapping that covers addr, or nil.
func (s *space) find(addr uint64) *mapping {
	if m := find(s.maps, addr); m != nil || s.before == nil {
		return m
	}
	return find(s.before, addr)
}

func find(maps []mapping, addr uint64) *mapping {
	i := sort.Search(len(maps), func(i int) bool { return maps[i].end > addr })
	if i < len(maps) && maps[i].start <= addr {
		return &maps[i]
	}
	return nil
}

// insert maps m, replacing what it overlaps: a mapping it covers goes, one it
// covers in part is cut, one that contains it is split. Empty ones are ignored.
func (s *space) insert(m mapping) {
	if m.start >= m.end {
		return
	}
	i := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].end > m.start })
	j := i
	for j < len(s.maps) && s.maps[j].start < m.end {
		j++
	}
	var pieces [3]mapping
	n := 0
	if i < j && s.maps[i].start < m.start {
		pieces[n] = s.maps[i]
		pieces[n].end = m.start
		n++
	}
	pieces[n] = m
	n++
	if i < j && s.maps[j-1].end > m.end {
		pieces[n] = s.maps[j-1]
		pieces[n].start = m.end
		n++
	}
	s.replace(i, j, pieces[:n])
}

// remove unmaps exactly the mapping that starts at start.
func (s *space) remove(start uint64) bool {
	m := find(s.maps, start)
	if m == nil || m.start != start {
		return false
	}
	i := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].end > start })
	s.replace(i, i+1, nil)
	return true
}

// replace puts with where mappings i to j-1 were.
func (s *space) replace(i, j int, with []mapping) {
	grow := len(with) - (j - i)
	switch {
	case grow > 0:
		for range grow {
			s.maps = append(s.maps, mapping{})
		}
		copy(s.maps[j+grow:], s.maps[j:])
	case grow < 0:
		copy(s.maps[j+grow:], s.maps[j:])
		clear(s.maps[len(s.maps)+grow:])
		s.maps = s.maps[:len(s.maps)+grow]
	}
	copy(s.maps[i:], with)
}

// fork returns a space that equals s now.
func (s *space) fork() *space {
	s.shared = true
	return &space{maps: s.maps[:len(s.maps):len(s.maps)], shared: true}
}

// exec unmaps everything.
func (s *space) exec() {
	s.before, s.maps, s.shared = s.maps, nil, false
}
