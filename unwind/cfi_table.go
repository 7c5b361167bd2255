package unwind

import (
	"sort"
)

// Section is the content of an ELF section and the link-time address of its
// first byte.
type Section struct {
	Name string
	Data []byte
	Addr uint64
}

// Sections is what call frame information is read from; any may be missing.
// The bytes are kept, not copied.
type Sections struct {
	BigEndian bool
	AddrSize  int // bytes, 4 or 8

	EhFrameHdr Section // .eh_frame_hdr: a sorted table of the FDEs in .eh_frame
	EhFrame    Section
	DebugFrame Section // decompressed

	Go bool // made by the Go toolchain, which describes frame pointers and stack switches by convention only

	TextBase, DataBase uint64 // what textrel and datarel pointers count from (start of text, of .got); hardly ever used
}

// Table answers which Row holds at an address of one ELF file. Addresses are
// the file's own, as linked. It remembers what it is asked, so it is fast
// when asked again, and not for use by several goroutines at once.
type Table struct {
	big                bool
	addrSize           int
	textBase, dataBase uint64

	hdr        searchTable  // usable if hdr.n > 0
	eh, debug  frameSection // by precedence
	ehIndex    []indexEntry // made when hdr is unusable
	debugIndex []indexEntry
	indexed    [2]bool

	cache  rowCache
	rows   []*Row
	ids    map[string]uint32 // by Row.key
	keyBuf []byte

	stats TableStats
}

// TableStats counts what was wrong with a table, as far as it was read.
type TableStats struct {
	BadEntries uint64 // CIEs and FDEs that could not be read
	BadRows    uint64 // addresses whose program could not be run
	FirstError error  // the first of either
}

// NewTable makes a Table. It reads next to nothing: what the sections hold is
// parsed when it is asked for, and what is malformed then is counted.
func NewTable(s Sections) *Table {
	t := &Table{
		big: s.BigEndian, addrSize: s.AddrSize, textBase: s.TextBase, dataBase: s.DataBase,
		ids: map[string]uint32{},
	}
	if t.addrSize != 4 {
		t.addrSize = 8
	}
	t.eh = newFrameSection(s.EhFrame, ".eh_frame", true)
	t.debug = newFrameSection(s.DebugFrame, ".debug_frame", false)
	t.hdr = t.readHdr(s.EhFrameHdr)
	return t
}

func newFrameSection(s Section, name string, eh bool) frameSection {
	if s.Name == "" {
		s.Name = name
	}
	s.Data = s.Data[:len(s.Data):len(s.Data)]
	if len(s.Data) > 1<<32-1 { // offsets are kept in 32 bits
		s.Data = s.Data[: 1<<32-1 : 1<<32-1]
	}
	return frameSection{Section: s, eh: eh, cies: map[uint64]*cie{}}
}

// Empty reports whether there is no call frame information at all.
func (t *Table) Empty() bool { return len(t.eh.Data) == 0 && len(t.debug.Data) == 0 }

// Stats says what was wrong so far.
func (t *Table) Stats() TableStats { return t.stats }

// Row returns the row that holds at pc, nil if there is none; then corrupt
// says whether there should be one. For the return address of a call, ask for
// the byte before it: the call may be the last instruction of its function.
func (t *Table) Row(pc uint64) (row *Row, corrupt bool) {
	id := t.cache.get(pc)
	if id == rowUnknown {
		id = t.find(pc)
		t.cache.put(pc, id)
	}
	if id >= rowFirst {
		return t.rows[id-rowFirst], false
	}
	return nil, id == rowCorrupt
}

// find looks pc up and interns its row.
func (t *Table) find(pc uint64) uint32 {
	f, ok, err := t.findFDE(pc)
	if err == nil && !ok {
		return rowNone
	}
	var st state
	if err == nil {
		st, _, _, err = t.state(&f, pc)
	}
	if err == nil && st.cfa.kind == ruleUnspecified {
		err = f.sec.errorf(f.off, "no rule for the CFA at %#x", pc)
	}
	if err != nil {
		t.stats.BadRows++
		t.note(err)
		return rowCorrupt
	}
	r := st.compile(&f)
	t.keyBuf = r.key(t.keyBuf[:0])
	id, ok := t.ids[string(t.keyBuf)]
	if !ok {
		t.rows = append(t.rows, &r)
		id = uint32(len(t.rows) - 1 + rowFirst)
		t.ids[string(t.keyBuf)] = id
	}
	return id
}

func (t *Table) note(err error) {
	if t.stats.FirstError == nil {
		t.stats.FirstError = err
	}
}

// findFDE returns the entry that covers pc.
func (t *Table) findFDE(pc uint64) (f fde, ok bool, err error) {
	if t.hdr.n > 0 {
		f, ok, err = t.hdr.find(t, pc)
		if err != nil { // the search table lies: make our own
			t.note(err)
			t.hdr.n = 0
		} else if ok {
			return f, true, nil
		}
	}
	if t.hdr.n == 0 && len(t.eh.Data) > 0 {
		if !t.indexed[0] {
			t.ehIndex, t.indexed[0] = t.index(&t.eh), true
		}
		if f, ok, err = t.search(&t.eh, t.ehIndex, pc); ok || err != nil {
			return f, ok, err
		}
	}
	if len(t.debug.Data) == 0 {
		return f, false, nil
	}
	if !t.indexed[1] {
		t.debugIndex, t.indexed[1] = t.index(&t.debug), true
	}
	return t.search(&t.debug, t.debugIndex, pc)
}

// indexEntry says where the FDE of the code from start on is.
type indexEntry struct {
	start uint64
	size  uint32 // saturated; only to skip entries that cannot match
	off   uint32 // in its section
}

// index reads every FDE of a section once.
func (t *Table) index(s *frameSection) []indexEntry {
	var index []indexEntry
	for f, err := range t.entries(s) {
		if err != nil {
			t.stats.BadEntries++
			t.note(err)
			continue
		}
		if f.end == f.start {
			continue
		}
		if f.start == 0 && !s.eh {
			continue // code a linker dropped (--gc-sections) keeps its FDE in .debug_frame, at 0
		}
		index = append(index, indexEntry{f.start, uint32(min(f.end-f.start, 1<<32-1)), uint32(f.off)})
	}
	sort.SliceStable(index, func(i, j int) bool { return index[i].start < index[j].start })
	return index
}

// entries reads a section's FDEs in file order. After an entry whose length
// makes no sense nothing can be found.
func (t *Table) entries(s *frameSection) func(yield func(fde, error) bool) {
	return func(yield func(fde, error) bool) {
		for off := uint64(0); off < uint64(len(s.Data)); {
			h, err := t.header(s, off)
			if err != nil {
				yield(fde{}, err)
				return
			}
			off = h.next
			if h.kind != entryFDE {
				continue
			}
			f, err := t.fdeBody(s, &h)
			if !yield(f, err) {
				return
			}
		}
	}
}

// maxOverlap is how many entries with lower start addresses are tried, for
// nested or empty ranges.
const maxOverlap = 8

func (t *Table) search(s *frameSection, index []indexEntry, pc uint64) (f fde, ok bool, err error) {
	i := sort.Search(len(index), func(i int) bool { return index[i].start > pc })
	for n := 0; i > 0 && n < maxOverlap; n++ {
		i--
		if e := &index[i]; e.size == 1<<32-1 || pc-e.start < uint64(e.size) {
			f, err = t.fde(s, uint64(e.off))
			return f, err == nil && pc < f.end, err
		}
	}
	return f, false, nil
}
