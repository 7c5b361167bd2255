package image

import (
	"slices"
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

// NameForm says how much of a C++ or Rust name is shown.
type NameForm string

const (
	// PerfNames are as perf prints them, which is the default: C++ without
	// parameters and return type, Rust without the hash of legacy symbols.
	// perf takes the suffixes of clones off C++ and Rust names, and leaves
	// them on others.
	PerfNames NameForm = "perf"
	// FullNames have everything: parameters, "[clone .cold]", "::h" and hash.
	FullNames NameForm = "full"
	// ShortNames lack template arguments too.
	ShortNames NameForm = "short"
)

// demangle returns the name of a symbol in the form the options ask for.
func (s *Store) demangle(system string) string {
	if len(system) < 3 || len(system) > maxMangled {
		return system
	}
	name, stub := strings.CutSuffix(system, "@plt")
	mangled := !s.opt.NoDemangle &&
		(strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "__Z"))
	if !mangled && !s.opt.MergeClones {
		return system
	}
	if d, ok := s.demangled[system]; ok {
		return d
	}
	if s.opt.MergeClones {
		name = cutClones(name)
	}
	d := name
	if mangled {
		d = demangled(name, s.opt.Names)
	}
	if stub {
		d += "@plt"
	}
	s.demangled[system] = d
	return d
}

// cloneSuffixes are what compilers append to the name of a function when they
// make another of it, or a part of it, followed by numbers (GCC
// clone_function_name and cold partitions; LLVM's promotion of local names).
var cloneSuffixes = []string{"cold", "part", "constprop", "isra", "ipcp", "simdclone", "lto_priv", "localalias", "llvm", "clone", "unlikely", "hot"}

// cutClones takes the suffixes of clones off a name: that of the function in
// the source remains.
func cutClones(name string) string {
	for {
		base := name
		if n := strings.TrimRight(name, "0123456789"); n != name && strings.HasSuffix(n, ".") {
			base = n[:len(n)-1] // "f.isra" of "f.isra.0"
		}
		i := strings.LastIndexByte(base, '.')
		if i <= 0 || !slices.Contains(cloneSuffixes, base[i+1:]) {
			return name
		}
		name = base[:i]
	}
}

func demangled(name string, form NameForm) (d string) {
	d = name
	defer func() {
		if recover() != nil {
			d = name
		}
	}()
	options := []demangle.Option{demangle.MaxLength(maxDemangled)}
	switch form {
	case FullNames:
	case ShortNames:
		options = append(options, demangle.NoParams, demangle.NoClones, demangle.NoTemplateParams)
	default:
		options = append(options, demangle.NoParams, demangle.NoClones)
	}
	d = demangle.Filter(keepUnderscores(name), options...)
	if strings.HasPrefix(d, "_ZN") {
		return name
	}
	if hash := legacyHash(name); hash != "" && form == FullNames && !strings.Contains(d, hash) {
		d += "::" + hash
	}
	return d
}

// legacyHash is the "h0123456789abcdef" of a legacy Rust symbol, else "".
func legacyHash(name string) string {
	if i := strings.Index(name, "E."); i >= 0 {
		name = name[:i+1]
	}
	if !strings.HasPrefix(name, "_ZN") || len(name) < rustHash {
		return ""
	}
	end := name[len(name)-rustHash:]
	if !strings.HasPrefix(end, "17h") || !strings.HasSuffix(end, "E") || strings.Trim(end[3:len(end)-1], "0123456789abcdef") != "" {
		return ""
	}
	return end[2 : len(end)-1]
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
