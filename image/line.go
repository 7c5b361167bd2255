package image

// Line returns the source line of a location, "" and 0 if unknown.
func (s *Store) Line(l Loc) (file string, line int) { return "", 0 }

// StartLine returns the line a function is declared in, and fills f.File and
// f.StartLine.
func (s *Store) StartLine(f *Function) int { return f.StartLine }

// ResolvePLT returns the function behind a PLT stub, or f itself.
func (s *Store) ResolvePLT(f *Function) *Function { return f }
