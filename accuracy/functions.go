package accuracy

import (
	"fmt"
	"slices"
)

// functionLevel returns the call edges of two profiles with call sites merged.
//
// Stripped programs have no names, so where both profiles know call sites a
// function is what begins at a truly called entry and reaches to the next one:
// the same division for both. A profile of stacks knows names only; then names
// decide for both.
func functionLevel(truth, got *Profile) (t, g Weights[FuncCall]) {
	if truth.Calls != nil && got.Calls != nil {
		e := entriesOf(truth)
		return e.merge(truth.Calls), e.merge(got.Calls)
	}
	return truth.byName(), got.byName()
}

func (p *Profile) byName() Weights[FuncCall] {
	if p.Calls == nil {
		return p.FuncCalls
	}
	w := make(Weights[FuncCall], len(p.Calls))
	for c, v := range p.Calls {
		caller, callee := p.Names(c)
		w[FuncCall{newFunc(c.SiteModule, caller, c.SiteOffset), newFunc(c.CalleeModule, callee, c.CalleeOffset)}] += v
	}
	return w
}

// entryTable has the entries of called functions by module, sorted.
type entryTable map[string][]uint64

func entriesOf(p *Profile) entryTable {
	e := entryTable{}
	for c := range p.Calls {
		e[c.CalleeModule] = append(e[c.CalleeModule], c.CalleeOffset)
	}
	for m := range e {
		slices.Sort(e[m])
	}
	return e
}

// function returns the function that covers an offset.
func (e entryTable) function(module string, offset uint64) Func {
	i, exact := slices.BinarySearch(e[module], offset)
	if !exact {
		i--
	}
	if i >= 0 {
		offset = e[module][i]
	} else {
		offset = 0 // before every called function
	}
	return Func{module, fmt.Sprintf("%#x", offset)}
}

func (e entryTable) merge(calls Weights[Call]) Weights[FuncCall] {
	w := make(Weights[FuncCall], len(calls))
	for c, v := range calls {
		w[FuncCall{e.function(c.SiteModule, c.SiteOffset), e.function(c.CalleeModule, c.CalleeOffset)}] += v
	}
	return w
}

// entries are the execution counters of functions: calls into each.
func entries(calls Weights[FuncCall]) Weights[Func] {
	w := Weights[Func]{}
	for f, v := range calls {
		w[f.Callee] += v
	}
	return w
}
