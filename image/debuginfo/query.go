package debuginfo

import (
	"cmp"
	"slices"
)

// Query asks what is known of an address, as linked.
type Query struct {
	Addr uint64

	// File and Line are the position of the instruction, inside the innermost
	// inlined call if there are any; "" and 0 if not known.
	File string
	Line int
	// Inlined is the innermost call inlined here, nil if there is none.
	Inlined *Inlined
	// Function is the function whose code this is, with everything inlined;
	// nil if not known.
	Function *Function

	size uint64 // of the range of code that decided
	sub  entry
}

// Inlined is an inlined call: of Function, at a line of the code around it,
// which is that of Outer, or of the function itself if Outer is nil.
type Inlined struct {
	Function *Function
	File     string // of the call
	Line     int
	Outer    *Inlined
}

// Function is what the debug information says of a function.
type Function struct {
	// Linkage is the mangled name, Name the one in the source; either may be
	// "". Scope is the namespaces and classes around Name, where Linkage is
	// "" and the language has such: "ns::(anonymous namespace)".
	Linkage, Name, Scope string
	// File and Line are where it is declared.
	File string
	Line int
}

// Describe answers queries; it sorts them by address. After an error the
// answers found before it stand.
func (f *File) Describe(qs []Query) error {
	slices.SortFunc(qs, func(a, b Query) int { return cmp.Compare(a.Addr, b.Addr) })
	for i := range qs {
		qs[i].size = ^uint64(0)
	}
	scopes := scopeQueries{}
	for _, u := range f.units {
		if len(u.ranges) == 0 || !u.concerns(qs) {
			continue
		}
		u.runLines(qs)
		u.search(qs, scopes)
		u.data, u.withCode().data = nil, nil
		if *f.budget <= 0 {
			return ErrWork
		}
	}
	for i := range qs {
		if sub := qs[i].sub; sub.u != nil {
			qs[i].Function = sub.u.file.describe(sub, scopes)
		}
	}
	scopes.answer()
	if *f.budget <= 0 {
		return ErrWork
	}
	return nil
}

func (u *unit) concerns(qs []Query) bool {
	for _, r := range u.ranges {
		if i := firstFrom(qs, r[0]); i < len(qs) && qs[i].Addr < r[1] {
			return true
		}
	}
	return false
}

// firstFrom returns the number of the first query of an address not below addr.
func firstFrom(qs []Query, addr uint64) int {
	lo, hi := 0, len(qs)
	for lo < hi {
		if m := (lo + hi) / 2; qs[m].Addr < addr {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}
