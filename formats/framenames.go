package formats

import (
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// frameNames numbers the names frames have in folded output, and finds those
// of each location once.
type frameNames struct {
	store  *image.Store
	inline bool // functions too
	ids    map[string]uint32
	names  []string

	comms map[graph.Label]commName
	// byLoc holds for each location, and for java's threads apart, the number
	// of its name plus 2; 0 is not looked up yet, 1 is in many.
	byLoc [2][]uint32
	many  map[locThread][]uint32
}

type commName struct {
	id   uint32
	java bool
}

type locThread struct {
	loc  image.Loc
	java bool
}

func newFrameNames(s *image.Store, inline bool) frameNames {
	n := s.NumLocs()
	return frameNames{
		store: s, inline: inline,
		ids:   map[string]uint32{},
		comms: map[graph.Label]commName{},
		byLoc: [2][]uint32{make([]uint32, n), nil},
		many:  map[locThread][]uint32{},
	}
}

func (f *frameNames) id(name string) uint32 {
	if id, ok := f.ids[name]; ok {
		return id
	}
	id := uint32(len(f.names))
	f.names = append(f.names, name)
	f.ids[name] = id
	return id
}

// comm returns the first name of a label's stacks, and whether it is java's.
func (f *frameNames) comm(l graph.Label) (uint32, bool) {
	c, ok := f.comms[l]
	if !ok {
		name := foldComm(l)
		c = commName{f.id(name), strings.HasPrefix(name, "java")}
		f.comms[l] = c
	}
	return c.id, c.java
}

// append appends the names of a location to ids.
func (f *frameNames) append(ids []uint32, l image.Loc, java bool) []uint32 {
	k := 0
	if java {
		k = 1
	}
	if int(l) >= len(f.byLoc[k]) {
		f.byLoc[k] = append(f.byLoc[k], make([]uint32, max(f.store.NumLocs(), int(l)+1)-len(f.byLoc[k]))...)
	}
	switch n := f.byLoc[k][l]; n {
	case 0:
		f.byLoc[k][l] = f.find(l, java)
		return f.append(ids, l, java)
	case 1:
		return append(ids, f.many[locThread{l, java}]...)
	default:
		return append(ids, n-2)
	}
}

// find names a location for the first time.
func (f *frameNames) find(l image.Loc, java bool) uint32 {
	var parts []string
	dso := dsoName(f.store.Addr(l).Image)
	name, inlined := f.functions(l)
	parts = foldNames(name, dso, java)
	if !isKernelDSO(dso) {
		dso = "inlined" // where perf script has the others' object
	}
	for _, name := range inlined {
		parts = append(parts, foldNames(name, dso, java)...)
	}
	if len(parts) == 1 {
		return f.id(parts[0]) + 2
	}
	ids := make([]uint32, len(parts))
	for i, p := range parts {
		ids[i] = f.id(p)
	}
	f.many[locThread{l, java}] = ids
	return 1
}

// functions returns the name of the function a location is in, and of what is
// inlined into it there, the outermost first. perf script names inlined
// functions as their symbols would be, or without namespaces if the debug
// information has no symbol of them.
func (f *frameNames) functions(l image.Loc) (name string, inlined []string) {
	name = unknown
	if fn := f.store.Function(l); fn != nil && fn.Name != "" {
		name = fn.Name
	}
	if !f.inline {
		return name, nil
	}
	for _, fr := range slices.Backward(f.store.Frames(l)) {
		switch {
		case fr.Function != nil:
		case fr.Scoped:
			inlined = append(inlined, fr.System)
		default:
			inlined = append(inlined, fr.Name)
		}
	}
	return name, inlined
}
