package image

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxMangled bounds what is given to the demangler: its work can grow faster
// than the length of a hostile name. Longer names stay as they are.
const maxMangled = 8 << 10

// maxDemangled bounds the result: back-references can make a short mangled
// name unfold without end. It is log2 of the number of bytes.
const maxDemangled = 14

// demangle returns the name as perf prints it: C++ without parameters and
// return type, Rust without the hash of legacy symbols.
func (s *Store) demangle(system string) string {
	if s.opt.NoDemangle || len(system) < 3 || len(system) > maxMangled {
		return system
	}
	name, stub := strings.CutSuffix(system, "@plt")
	if !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "_R") && !strings.HasPrefix(name, "__Z") {
		return system
	}
	if d, ok := s.demangled[system]; ok {
		return d
	}
	d := demangled(name)
	if stub {
		d += "@plt"
	}
	s.demangled[system] = d
	return d
}

func demangled(name string) (d string) {
	d = name
	defer func() {
		if recover() != nil {
			d = name
		}
	}()
	return demangle.Filter(name, demangle.NoParams, demangle.NoClones, demangle.MaxLength(maxDemangled))
}
