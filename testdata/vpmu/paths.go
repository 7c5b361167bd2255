package vpmu

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/image"
)

// decision marks, in a path node's site, a branch that could have gone
// elsewhere: conditional or indirect (plugin/vpmu.c).
const decision = 1 << 31

// pathLines spells the paths of the tree. The plugin does not know where
// functions begin, so a jump to another function (a tail call) is still inside
// a path there; here it ends one and starts the next.
func pathLines(t *truthData, n *namer) []PathLine {
	type sum struct {
		start    uint32
		branches int
		count    uint64
	}
	sums := map[string]*sum{}
	var places []uint32
	var decided []bool // whether the step to the place after places[i] was a branch with a choice
	var key []byte
	add := func(from, to int, count uint64) {
		key = key[:0]
		branches := 0
		for i := from; i < to; i++ {
			key = binary.LittleEndian.AppendUint32(key, places[i])
			if decided[i] {
				branches++
			}
		}
		if s := sums[string(key)]; s != nil {
			s.count += count
			return
		}
		sums[string(key)] = &sum{places[from], branches, count}
	}
	for i := 1; i < len(t.paths); i++ {
		if t.paths[i].count == 0 {
			continue
		}
		places, decided = places[:0], append(decided[:0], false)
		for j := i; t.paths[j].parent != 0; j = int(t.paths[j].parent) {
			if t.paths[j].callee != 0 {
				places = append(places, t.paths[j].callee)
				decided = append(decided, t.paths[j].site&decision != 0)
			} else { // the backward jump it ended with
				decided[0] = t.paths[j].site&decision != 0
			}
		}
		if len(places) == 0 {
			continue
		}
		slices.Reverse(places)
		decided = decided[:len(places)] // less the step to the first place
		slices.Reverse(decided)
		from := 0
		for k := 1; k < len(places); k++ {
			if !n.sameFunction(places[k-1], places[k]) {
				add(from, k, t.paths[i].count)
				from = k
			}
		}
		add(from, len(places), t.paths[i].count)
	}
	lines := make([]PathLine, 0, len(sums))
	for k, s := range sums {
		l := PathLine{Module: n.module(s.start), FunctionOffset: n.entry(s.start), Count: s.count, Branches: s.branches, Function: n.name(s.start)}
		for ; k != ""; k = k[4:] {
			l.Path = append(l.Path, n.offset(uint32(k[0])|uint32(k[1])<<8|uint32(k[2])<<16|uint32(k[3])<<24))
		}
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b PathLine) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.FunctionOffset, b.FunctionOffset), slices.Compare(a.Path, b.Path))
	})
	return lines
}

// sameFunction: GCC moves cold blocks to a symbol of their own, name.cold,
// which stays part of the function.
func (n *namer) sameFunction(a, b uint32) bool {
	if n.truth.places[a].image != n.truth.places[b].image {
		return false
	}
	f, g := n.function(a), n.function(b)
	return f == g || (f != nil && g != nil && base(f) == base(g) && base(f) != "")
}

func base(f *image.Function) string {
	s, _, _ := strings.Cut(f.System, ".cold")
	return s
}
