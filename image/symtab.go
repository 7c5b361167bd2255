package image

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"
)

// symbol is a named range of offsets. In a table that is finished, ranges are
// sorted by start, starts are distinct, and end is exclusive.
type symbol struct {
	start, end uint64
	name       string
	bind       elf.SymBind
	typ        elf.SymType
	stub       bool // an entry of a procedure linkage table
	data       bool // not a function: only bounds the function before it
}

// symtab answers which symbol covers an offset.
//
// # Overlap rules
//
// They are perf's (tools/perf/util/symbol.c: symbols__fixup_end,
// symbols__fixup_duplicate, choose_best_symbol), in this order:
//
//  1. A symbol without size reaches to the next symbol's start; the last one
//     to the end of its 4096-byte page and one page more. (Aliases at one
//     address all stay empty but the last.)
//  2. Of several symbols at one address one remains: see better.
//  3. An offset belongs to the symbol with the highest start at or below it
//     that covers it: of nested symbols the inner one. (perf's answer there
//     depends on the shape of its tree; this is the one it means.)
type symtab struct {
	all []symbol
	// outer[i] is the nearest symbol before i that ends behind it, -1 if none:
	// where to look on when an offset lies behind the end of symbol i.
	outer []int32
}

const (
	pageSize   = 4096
	maxNesting = 1000 // symbols inside symbols; more is no compiler's work
)

type symtabBuilder struct{ all []symbol }

func (b *symtabBuilder) add(y symbol) { b.all = append(b.all, y) }

// finish applies the overlap rules. The builder is used up.
func (b *symtabBuilder) finish() *symtab {
	all := b.all
	b.all = nil
	slices.SortStableFunc(all, func(x, y symbol) int { return cmp.Compare(x.start, y.start) })
	for i := range all {
		if all[i].end > all[i].start {
			continue
		}
		if i+1 < len(all) {
			all[i].end = all[i+1].start
		} else {
			all[i].end = all[i].start/pageSize*pageSize + 2*pageSize
		}
	}
	kept := all[:0]
	for _, y := range all {
		if n := len(kept); n > 0 && kept[n-1].start == y.start {
			if better(y, kept[n-1]) {
				kept[n-1] = y
			}
			continue
		}
		kept = append(kept, y)
	}
	t := &symtab{all: slices.Clip(kept), outer: make([]int32, len(kept))}
	for i, y := range kept {
		j := int32(i) - 1
		for j >= 0 && kept[j].end <= y.end {
			j = t.outer[j]
		}
		t.outer[i] = j
	}
	return t
}

// better says whether y rather than x names their common address: one with
// a size, one with a type, not weak, global, fewer leading underscores, the
// longer name, else the earlier one, x.
func better(y, x symbol) bool {
	if ey, ex := y.end == y.start, x.end == x.start; ey != ex {
		return ex
	}
	if y.typ != x.typ {
		if y.typ == elf.STT_NOTYPE {
			return false
		}
		if x.typ == elf.STT_NOTYPE {
			return true
		}
	}
	if wy, wx := y.bind == elf.STB_WEAK, x.bind == elf.STB_WEAK; wy != wx {
		return wx
	}
	if gy, gx := y.bind == elf.STB_GLOBAL, x.bind == elf.STB_GLOBAL; gy != gx {
		return gy
	}
	if uy, ux := underscores(y.name), underscores(x.name); uy != ux {
		return uy < ux
	}
	return len(y.name) > len(x.name)
}

func underscores(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }

// find returns the number of the symbol that covers an offset, or -1.
func (t *symtab) find(offset uint64) int {
	i, exact := slices.BinarySearchFunc(t.all, offset, func(y symbol, o uint64) int { return cmp.Compare(y.start, o) })
	if !exact {
		i--
	}
	for hops := 0; i >= 0 && hops < maxNesting; hops++ {
		if t.all[i].end > offset {
			if t.all[i].data {
				return -1
			}
			return i
		}
		i = int(t.outer[i])
	}
	return -1
}

// cut returns end, or the start of the first symbol in [start, end).
func (t *symtab) cut(start, end uint64) uint64 {
	if t == nil {
		return end
	}
	i, _ := slices.BinarySearchFunc(t.all, start, func(y symbol, o uint64) int { return cmp.Compare(y.start, o) })
	if i < len(t.all) {
		return min(end, t.all[i].start)
	}
	return end
}
