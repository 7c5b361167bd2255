package formats

import (
	"cmp"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/image"
)

// symbols writes the locations a profile uses, their functions and mappings.
//
// A recording may show one file at many addresses, and other files at the same
// one in another process, while a profile has one mapping for each file. So
// the mappings' addresses are made up: each image's used part gets a range of
// its own, from firstStart on, and
//
//	address - mapping start + mapping offset
//
// is what an offset in that image is: for a file, the file offset. Only the
// kernel keeps its addresses. A location in no known image has its address as
// recorded, and no mapping.
type symbols struct {
	w        *pprofWriter
	mappings map[*image.Image]*mapping
	ordered  []*mapping
	// functions by what tells them apart, in the order of their numbers from 1.
	functions map[function]uint64
	list      []function
}

type mapping struct {
	id, start, lo, hi uint64 // [lo, hi) are offsets in the image
	image             *image.Image
	locs              int
	files, lines      bool
}

// function is what a profile says of one; of is nil if it is inlined.
type function struct {
	of                 *image.Function
	name, system, file string
	startLine          int
}

const (
	firstStart = 1 << 22
	page       = 1 << 12
	maxSpan    = 1 << 48 // of a made-up range: user space
)

func newSymbols(w *pprofWriter) *symbols {
	s := &symbols{w: w, mappings: map[*image.Image]*mapping{}, functions: map[function]uint64{}}
	for l, used := range w.used {
		if used {
			s.extend(image.Loc(l))
		}
	}
	s.place()
	return s
}

// address is where a location is in its image: a return address stands for the
// call before it, as in the profiles of Go's runtime.
func (s *symbols) address(l image.Loc) image.Addr {
	a := s.w.p.Store.Addr(l)
	if a.Return && a.Offset > 0 {
		a.Offset--
	}
	return a
}

func (s *symbols) extend(l image.Loc) {
	a := s.address(l)
	if a.Image.Kind == image.Unknown {
		return
	}
	m := s.mappings[a.Image]
	if m == nil {
		m = &mapping{image: a.Image, lo: a.Offset, hi: a.Offset}
		s.mappings[a.Image] = m
		s.ordered = append(s.ordered, m)
	}
	m.lo, m.hi = min(m.lo, a.Offset), max(m.hi, a.Offset)
	m.locs++
}

// place orders and numbers the mappings and gives them their addresses. pprof
// takes the first for the main program, so that is the one no library or
// kernel is, with the most locations.
func (s *symbols) place() {
	main := func(m *mapping) int {
		if m.image.Kind != image.File || strings.Contains(m.image.Name(), ".so") {
			return 0
		}
		return m.locs
	}
	slices.SortStableFunc(s.ordered, func(a, b *mapping) int { return cmp.Compare(main(b), main(a)) })
	next := uint64(firstStart)
	for i, m := range s.ordered {
		m.id = uint64(i + 1)
		m.lo &^= page - 1
		m.hi |= page - 1 // the last byte, so that nothing overflows
		span := m.hi - m.lo
		if m.image.Kind == image.Kernel || span >= maxSpan || next >= 1<<63-maxSpan {
			m.start = m.lo
			continue
		}
		m.start = next
		next += span + 1 + page
	}
}

func (s *symbols) write() {
	w := s.w
	for l, used := range w.used {
		if used {
			w.out.message(profileLocation, s.location(image.Loc(l)))
		}
	}
	for _, m := range s.ordered {
		w.out.message(profileMapping, s.mapping(m))
	}
	for i, f := range s.list {
		w.out.message(profileFunction, s.function(uint64(i+1), f))
	}
}

func (s *symbols) location(l image.Loc) []byte {
	w, a := s.w, s.address(l)
	b := appendField(w.body[:0], locationID, uint64(l)+1)
	m := s.mappings[a.Image]
	address := a.Offset
	if m != nil {
		b = appendField(b, locationMapping, m.id)
		address = a.Offset - m.lo + m.start
	}
	b = appendField(b, locationAddr, address)
	for _, f := range s.frames(l) {
		in := appendField(w.inner[:0], lineFunction, s.functionID(f))
		w.inner = appendField(in, lineLine, uint64(max(0, f.Line)))
		b = appendBytes(b, locationLine, w.inner)
		if m != nil {
			m.lines = m.lines || f.Line > 0
			m.files = m.files || f.File != "" || f.DeclaredIn != ""
		}
	}
	w.body = b
	return b
}

// frames are the functions at a location that have names, innermost first.
func (s *symbols) frames(l image.Loc) []image.Frame {
	frames := s.w.p.Store.Frames(l)
	if n := len(frames); n > 0 {
		if f := frames[n-1]; f.Name == "" && f.System == "" {
			return nil
		}
		if !s.w.p.Inline {
			return frames[n-1:] // its line is that of the outermost inlined call
		}
	}
	return frames
}

// functionID numbers a function. Inlined ones are the same if all that is
// known of them is.
func (s *symbols) functionID(f image.Frame) uint64 {
	key := function{f.Function, f.Name, f.System, f.DeclaredIn, f.StartLine}
	if f.Function != nil {
		key = function{of: f.Function}
	}
	id, ok := s.functions[key]
	if !ok {
		file := f.DeclaredIn
		if file == "" {
			file = f.File
		}
		s.list = append(s.list, function{f.Function, f.Name, f.System, file, f.StartLine})
		id = uint64(len(s.list))
		s.functions[key] = id
	}
	return id
}

func (s *symbols) function(id uint64, f function) []byte {
	w := s.w
	name := f.name
	if name == "" {
		name = f.system
	}
	b := appendField(w.body[:0], functionID, id)
	b = appendField(b, functionName, w.str(name))
	b = appendField(b, functionSystem, w.str(f.system))
	b = appendField(b, functionFile, w.str(f.file))
	w.body = appendField(b, functionStartLine, uint64(max(0, f.startLine)))
	return w.body
}

// mapping says that names have been looked up, even if none were found: pprof
// would look for the file of a mapping without and take it for the recorded
// one.
func (s *symbols) mapping(m *mapping) []byte {
	w := s.w
	b := appendField(w.body[:0], mappingID, m.id)
	b = appendField(b, mappingStart, m.start)
	b = appendField(b, mappingLimit, m.start+(m.hi-m.lo)+1)
	b = appendField(b, mappingOffset, m.lo)
	b = appendField(b, mappingFile, w.str(dsoName(m.image)))
	b = appendField(b, mappingBuild, w.str(m.image.BuildID))
	b = appendBool(b, mappingHasFunctions, true)
	b = appendBool(b, mappingHasFunctions+1, m.files)
	w.body = appendBool(b, mappingHasFunctions+2, m.lines)
	return w.body
}
