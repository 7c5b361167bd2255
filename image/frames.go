package image

import "github.com/perfcorrect/perfcorrect/image/debuginfo"

// Frame is a function whose code runs at a location: the one that is there,
// or one inlined into it.
type Frame struct {
	// Name and System are as those of Function. Of an inlined function whose
	// mangled name the debug information does not have (GCC leaves it out
	// where the symbol would be local), System is the name in the source. If
	// it is Scoped, Name is that with the namespaces and classes around it.
	Name, System string
	Scoped       bool
	// File and Line are the position of the location in this function: of the
	// instruction for the first frame, of the inlined call for the others.
	File string
	Line int
	// DeclaredIn and StartLine are where the function is declared.
	DeclaredIn string
	StartLine  int
	// Function is the one whose symbol covers the location; nil for inlined
	// ones.
	Function *Function
}

// maxInlined bounds how many frames one location may become.
const maxInlined = 256

// Frames returns the functions a location is in, the innermost inlined one
// first, the one with the symbol last; none if no symbol covers it. As with
// Line, all locations are to be interned before the first question.
func (s *Store) Frames(l Loc) []Frame {
	f := s.Function(l)
	if f == nil {
		return nil
	}
	s.describeLoc(l)
	at := s.lines[l]
	var frames []Frame
	for call := s.inlined[l]; call != nil && len(frames) < maxInlined; call = call.Outer {
		if g := s.inlinedFrame(call.Function); g.Name != "" {
			g.File, g.Line = at.file, at.line
			if g.DeclaredIn == "" { // Go's compiler leaves it out
				g.DeclaredIn = at.file
			}
			frames = append(frames, g)
		}
		at = position{call.File, call.Line}
	}
	return append(frames, Frame{
		Name: f.Name, System: f.System, File: at.file, Line: at.line,
		DeclaredIn: f.File, StartLine: f.StartLine, Function: f,
	})
}

func (s *Store) inlinedFrame(f *debuginfo.Function) Frame {
	g := Frame{System: f.Linkage, DeclaredIn: f.File, StartLine: f.Line}
	switch {
	case f.Linkage != "":
		g.Name = s.demangle(f.Linkage)
	case f.Scope != "":
		g.System, g.Name, g.Scoped = f.Name, f.Scope+"::"+f.Name, true
	default:
		g.System, g.Name = f.Name, f.Name
	}
	return g
}
