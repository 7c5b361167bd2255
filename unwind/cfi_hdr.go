package unwind

import "sort"

// searchTable is the binary search table of .eh_frame_hdr (LSB Core 5.0,
// 10.6.2): pairs of start address and FDE address, sorted.
type searchTable struct {
	data  []byte // the pairs
	n     int    // 0: none, or not to be trusted
	size  int    // bytes of a pair's half
	base  uint64 // what both count from
	big   bool
	sign  bool
	limit uint64 // mask of an address
}

// readHdr reads the header and believes it only if the table has one of the
// encodings linkers write, fits, is sorted and points into .eh_frame.
func (t *Table) readHdr(s Section) (h searchTable) {
	c := cursor{data: s.Data, big: t.big, addrSize: t.addrSize}
	version, frameEnc, countEnc, tableEnc := c.u8(), c.u8(), c.u8(), c.u8()
	if c.bad || version != 1 || countEnc == encOmit || tableEnc == encOmit {
		return h
	}
	b := bases{section: s.Addr, text: t.textBase, data: s.Addr}
	c.encoded(frameEnc, b)
	n := c.encoded(countEnc, b)
	h = searchTable{big: t.big, limit: 1<<64 - 1}
	if t.addrSize == 4 {
		h.limit = 1<<32 - 1
	}
	switch tableEnc & 0x0f {
	case encSdata4:
		h.size, h.sign = 4, true
	case encUdata4:
		h.size = 4
	case encSdata8, encUdata8:
		h.size = 8
	}
	switch tableEnc & 0xf0 {
	case encDataRel:
		h.base = s.Addr
	case encAbsptr:
	default:
		h.size = 0
	}
	if c.bad || h.size == 0 || n > uint64(c.left()/(2*h.size)) {
		return searchTable{}
	}
	h.data, h.n = s.Data[c.pos:], int(n)
	if !h.trustworthy(&t.eh) {
		return searchTable{}
	}
	return h
}

// half reads one address of pair i: 0 its start, 1 its FDE.
func (h *searchTable) half(i, which int) uint64 {
	at := (2*i + which) * h.size
	v := decodeUint(h.data[at:at+h.size], h.big)
	if h.sign && h.size == 4 {
		v = uint64(int64(int32(v)))
	}
	return (v + h.base) & h.limit
}

func (h *searchTable) trustworthy(eh *frameSection) bool {
	last := uint64(0)
	for i := range h.n {
		start := h.half(i, 0)
		if start < last || h.half(i, 1)-eh.Addr >= uint64(len(eh.Data)) {
			return false
		}
		last = start
	}
	return true
}

// find returns the FDE that covers pc. An error means that the table and
// .eh_frame do not agree.
func (h *searchTable) find(t *Table, pc uint64) (f fde, ok bool, err error) {
	i := sort.Search(h.n, func(i int) bool { return h.half(i, 0) > pc })
	for n := 0; i > 0 && n < maxOverlap; n++ {
		i--
		off := h.half(i, 1) - t.eh.Addr
		if f, err = t.fde(&t.eh, off); err != nil {
			return f, false, err
		}
		if start := h.half(i, 0); start != f.start {
			return f, false, t.eh.errorf(off, "FDE of %#x, listed as %#x", f.start, start)
		}
		if pc < f.end {
			return f, true, nil
		}
		if f.end > f.start {
			return f, false, nil // only empty entries hide one before them
		}
	}
	return f, false, nil
}
