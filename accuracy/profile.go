package accuracy

import (
	"path"
	"strings"
)

// A Call is a call edge: the call instruction at (SiteModule, SiteOffset) and
// the entry of the function it calls, as file offsets. Modules are base names,
// because a file may lie elsewhere where the other profile was made.
type Call struct {
	SiteModule   string
	SiteOffset   uint64
	CalleeModule string
	CalleeOffset uint64
}

// A FuncCall is a call edge at function level.
type FuncCall struct{ Caller, Callee Func }

// A Func is a function: by module and name where only names are known, else by
// module and entry. See functionLevel.
type Func struct{ Module, Name string }

// A BranchSite is a conditional branch instruction.
type BranchSite struct {
	Module string
	Offset uint64
}

// A Context is a calling context: a number that stands for the same path of
// calls in every profile read by the same Reader.
type Context int

// A Profile is what one file says; a part it does not have is nil.
type Profile struct {
	Name      string
	Calls     Weights[Call]
	FuncCalls Weights[FuncCall] // of a profile of stacks, which has no call sites

	Contexts     Weights[Context] // told apart by call site
	FuncContexts Weights[Context] // by function alone, as Zhuang 2006, Definition 1

	Branches map[BranchSite]Branch
	Paths    map[string]Path

	// Unplaced counts calls of a callgrind file whose caller or callee lies in
	// no file that could be read; they are in no other part.
	Unplaced float64

	callNames map[Call][2]string
}

// Names returns the names of the caller and the callee of an edge.
func (p *Profile) Names(c Call) (caller, callee string) {
	n := p.callNames[c]
	return n[0], n[1]
}

// addCall adds one call edge at both levels. caller and callee may be "".
func (p *Profile) addCall(c Call, caller, callee string, calls float64) {
	if p.Calls == nil {
		p.Calls = Weights[Call]{}
		p.callNames = map[Call][2]string{}
	}
	c.SiteModule, c.CalleeModule = module(c.SiteModule), module(c.CalleeModule)
	p.Calls[c] += calls
	p.callNames[c] = [2]string{caller, callee}
}

// module is the base name of a file. Code in memory without a file is named
// after its mapping (//anon) or after the file perf looks for its symbols in.
func module(name string) string {
	name = path.Base(name)
	if strings.HasPrefix(name, "perf-") && strings.HasSuffix(name, ".map") {
		return "anon"
	}
	return name
}

func (p *Profile) addFuncCall(f FuncCall, calls float64) {
	if p.FuncCalls == nil {
		p.FuncCalls = Weights[FuncCall]{}
	}
	p.FuncCalls[f] += calls
}
