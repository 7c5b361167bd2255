package image

import (
	"strconv"
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
	if d = demangle.Filter(keepUnderscores(name), demangle.NoParams, demangle.NoClones, demangle.MaxLength(maxDemangled)); strings.HasPrefix(d, "_ZN") {
		return name
	}
	return d
}

// rustHash is the end of a legacy Rust symbol: "17h", 16 digits of hash, "E".
const rustHash = len("17h0123456789abcdefE")

// keepUnderscores doubles the underscores that begin the identifiers of a
// legacy Rust symbol ("15_mm_shuffle_epi8"). demangle takes one for a
// separator; it is one only before an escape ("_$LT$"), as in libiberty's
// rust-demangle.c.
func keepUnderscores(name string) string {
	rest, ok := strings.CutPrefix(name, "_ZN")
	suffix := ""
	if i := strings.Index(rest, "E."); i >= 0 { // ".llvm.123"
		rest, suffix = rest[:i+1], rest[i+1:]
	}
	if !ok || len(rest) < rustHash || !strings.HasPrefix(rest[len(rest)-rustHash:], "17h") || !strings.Contains(rest, "_") {
		return name
	}
	var b strings.Builder
	b.WriteString("_ZN")
	for rest != "" && rest[0] != 'E' {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > len(rest)-digits {
			return name
		}
		id := rest[digits : digits+n]
		if strings.HasPrefix(id, "_") && !strings.HasPrefix(id, "_$") {
			id = "_" + id
		}
		b.WriteString(strconv.Itoa(len(id)))
		b.WriteString(id)
		rest = rest[digits+n:]
	}
	b.WriteString(rest)
	b.WriteString(suffix)
	return b.String()
}
