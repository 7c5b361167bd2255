package debuginfo

import (
	"errors"
	"fmt"
)

// Names of the sections, without ".debug_" and a split file's ".dwo".
const (
	secInfo = iota
	secTypes
	secAbbrev
	secStr
	secLineStr
	secStrOffsets
	secAddr
	secRanges
	secRnglists
	secLine
	secCUIndex
	secTUIndex
	sections
)

var sectionNames = [sections]string{
	"info", "types", "abbrev", "str", "line_str", "str_offsets", "addr", "ranges", "rnglists", "line", "cu_index", "tu_index",
}

// Source gives a File its content.
type Source struct {
	Path      string // of the ELF file, for errors
	BigEndian bool
	// Lowest is the lowest address of code. What linkers remove they leave
	// described at lower addresses, mostly 0.
	Lowest uint64
	// Section returns a section by name (".debug_info"), the zero Section if
	// the file does not have it.
	Section func(name string) (Section, error)
	// Split finds the file a skeleton unit (DWARF 5, section 3.1.3) names:
	// name and dir are its attributes; or, when name is "", the package file
	// of all. nil if there is none.
	Split func(dir, name string) *Source
	// Alternate finds the supplementary file (dwz), nil if there is none.
	Alternate func() *Source
}

// File is the debug information of one file. It is used by one goroutine at a
// time.
type File struct {
	src      Source
	sections [sections]Section
	units    []*unit // of .debug_info, then of .debug_types
	infoEnd  int     // number of the former
	typed    map[uint64]typeAt

	tables map[abbrevKey]*abbrevTable
	attrs  int
	held   int // bytes of units' content in memory
	lines  map[uint64]*lineTable
	known  map[entry]*Function

	alt     *File
	altDone bool
	split   splitFiles

	budget     *int64
	unitRanges int // how many ranges units may still have, all together
}

// Work may be this many times the size of the sections: a search reads a byte
// a few times, not more often.
const (
	workPerByte = 32
	workAtLeast = 1 << 22
)

// ErrWork says that a file made reading it too much work, as no compiler's
// file does. What was found out before stands.
var ErrWork = errors.New("debug information refers to itself too often")

// Open reads the headers of the units. Units that cannot be read are left
// out; the error says that none can.
func Open(src Source) (*File, error) {
	budget := int64(workAtLeast)
	f, err := open(src, "", &budget)
	if err != nil {
		return nil, err
	}
	f.readUnits(secInfo)
	f.infoEnd = len(f.units)
	f.readUnits(secTypes)
	if len(f.units) == 0 && f.sections[secInfo].size() > 0 {
		return nil, fmt.Errorf("%s: no readable unit in %d bytes of .debug_info", src.Path, f.sections[secInfo].size())
	}
	return f, nil
}

func open(src Source, suffix string, budget *int64) (*File, error) {
	f := &File{src: src, budget: budget, known: map[entry]*Function{}, lines: map[uint64]*lineTable{}}
	for i, name := range sectionNames {
		s, err := src.Section(".debug_" + name + suffix)
		if err != nil {
			return nil, err
		}
		f.sections[i] = s
		*budget += int64(min(s.size(), 1<<40)) * workPerByte
		f.unitRanges += int(min(s.size(), 1<<40)) // a range takes more than a byte
	}
	return f, nil
}

// spend takes n steps off what work is left and says whether there was.
func (f *File) spend(n int) bool {
	*f.budget -= int64(n)
	return *f.budget > 0
}

// grow lets read have ever more bytes of a section until it succeeds.
func (f *File) grow(section int, off uint64, want int, read func(*cursor) bool) bool {
	s := &f.sections[section]
	for {
		b := s.from(off, want)
		c := cursor{b: b, big: f.src.BigEndian}
		ok := read(&c)
		if !f.spend(c.off + 1) {
			return false
		}
		if ok || len(b) < want || uint64(len(b)) >= s.size()-min(off, s.size()) {
			return ok
		}
		want = max(len(b), want) * 4
	}
}
