package cfg

import (
	"slices"

	"github.com/perfcorrect/perfcorrect/image/x86"
)

// Code is what Build asks about the program around the function.
type Code interface {
	// Bytes returns up to n bytes of code or read-only data at addr, fewer or
	// none where the image has none.
	Bytes(addr uint64, n int) []byte
	// Function returns the bounds and the raw symbol name of the function that
	// covers addr; ok is false if none is known to.
	Function(addr uint64) (entry, end uint64, name string, ok bool)
	// NoReturn reports whether the function entered at addr is known never to
	// return (exit, abort, __cxa_throw...).
	NoReturn(addr uint64) bool
}

// Graph is the control-flow graph of one function.
type Graph struct {
	Entry  uint64
	Ranges []Range // where its code lies: the function itself, then cold parts
	Blocks []Block // in order of address
	Start  int     // index of the block at Entry
	Calls  []Call  // in order of address
	// Runs are the stretches of code between branches, calls among them, in
	// order of address: a run is executed as a whole.
	Runs []Run
	// EntryClass is the class of entering the function: blocks of it run
	// exactly once per call. It has no block if a loop goes through the entry
	// and the function is left elsewhere.
	EntryClass int
	Classes    int     // number of classes, of blocks and edges
	Returns    bool    // some way through the function leads back to its caller
	Doubts     []Doubt // why edges and classes may be wrong; empty if they are trusted
}

// Range is [Start, End).
type Range struct{ Start, End uint64 }

func (r Range) contains(a uint64) bool { return a >= r.Start && a < r.End }

// Block is a basic block: code that is entered only at its first instruction
// and left only at its last. Calls do not end a block, unless they never
// return.
type Block struct {
	Start, End uint64
	Insts      int
	Last       uint64 // address of the last instruction
	LastKind   x86.Control
	Succs      []int // indices of blocks; Exit where the function is left
	SuccClass  []int // classes of the edges to Succs; -1 for edges from or to blocks that are not reached or die
	Class      int   // blocks of one class run equally often
	Reached    bool  // by some path from the entry; landing pads of exceptions are not
	// Dies: every way on ends in a call that never returns or in a trap, while
	// the function itself returns. A program does that once, so classes are
	// those of the graph without such blocks.
	Dies bool
}

// Exit stands among the successors of a block for leaving the function.
func (g *Graph) Exit() int { return len(g.Blocks) }

// Run is code from the beginning of a block, or from behind a call, up to the
// next branch or the end of the block.
type Run struct {
	Start, End uint64
	Insts      int
	Block      int
	Repeats    bool // has a string instruction, which takes as long as its string
}

// Call is a call instruction, or a jump that leaves the function for another.
type Call struct {
	Site     uint64
	Return   uint64 // behind the call; 0 for a tail call
	Target   uint64 // 0 if indirect
	Block    int
	Tail     bool
	NoReturn bool
}

// Doubt says where and why the graph is not to be trusted.
type Doubt struct {
	At  uint64
	Why string
}

// Trusted reports whether all edges of the graph are known.
func (g *Graph) Trusted() bool { return len(g.Doubts) == 0 }

// BlockAt returns the index of the block that covers addr, or -1.
func (g *Graph) BlockAt(addr uint64) int {
	i, exact := slices.BinarySearchFunc(g.Blocks, addr, func(b Block, a uint64) int {
		switch {
		case b.Start < a:
			return -1
		case b.Start > a:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	if i < 0 || addr >= g.Blocks[i].End {
		return -1
	}
	return i
}

// maxInsts bounds the work on one function. The largest functions of real
// programs (interpreters made by generators) have a tenth of it.
const maxInsts = 2_000_000

// Build decodes the function at [entry, end).
func Build(code Code, entry, end uint64) *Graph {
	d := &decoder{
		code:   code,
		g:      &Graph{Entry: entry, Ranges: []Range{{entry, end}}},
		insts:  map[uint64]x86.Inst{},
		leader: map[uint64]bool{entry: true},
		succs:  map[uint64][]uint64{},
	}
	d.load(0)
	d.follow(entry)
	d.sweep()
	d.blocks()
	d.classes()
	return d.g
}

// decoder holds the state of one Build.
type decoder struct {
	code   Code
	g      *Graph
	text   [][]byte // bytes of g.Ranges
	insts  map[uint64]x86.Inst
	leader map[uint64]bool // first instructions of blocks
	// succs has the targets of instructions that end a block, within the
	// function; an instruction that leaves it has the successor leave.
	succs   map[uint64][]uint64
	calls   []Call
	runEnds bool // the latest instruction given to addRun ends its run
}

const leave = ^uint64(0)

func (d *decoder) load(i int) {
	r := d.g.Ranges[i]
	b := d.code.Bytes(r.Start, int(min(r.End-r.Start, maxInsts*15)))
	d.text = append(d.text, b)
	if uint64(len(b)) < r.End-r.Start {
		d.doubt(r.Start+uint64(len(b)), "code bytes are missing")
	}
}

func (d *decoder) doubt(at uint64, why string) {
	d.g.Doubts = append(d.g.Doubts, Doubt{at, why})
}

// at returns the bytes from addr to the end of the range that has it.
func (d *decoder) at(addr uint64) []byte {
	for i, r := range d.g.Ranges {
		if r.contains(addr) && addr-r.Start < uint64(len(d.text[i])) {
			return d.text[i][addr-r.Start:]
		}
	}
	return nil
}

func (d *decoder) inside(addr uint64) bool {
	for _, r := range d.g.Ranges {
		if r.contains(addr) {
			return true
		}
	}
	return false
}

// follow decodes everything reachable from addr.
func (d *decoder) follow(addr uint64) {
	todo := []uint64{addr}
	d.leader[addr] = true
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		todo = append(todo, d.straight(pc)...)
	}
}

// straight decodes from pc up to the end of the block or to code that is
// known, and returns the leaders it found that are not decoded yet.
func (d *decoder) straight(pc uint64) (todo []uint64) {
	for {
		if _, known := d.insts[pc]; known {
			return nil
		}
		if len(d.insts) >= maxInsts {
			d.doubt(pc, "the function is too large")
			return nil
		}
		in, err := x86.Decode(d.at(pc), pc)
		if err != nil {
			d.doubt(pc, "unknown instruction")
			return nil
		}
		d.insts[pc] = in
		if ends := d.control(&in); ends {
			break
		}
		pc = in.End()
	}
	for _, s := range d.succs[pc] {
		if s == leave {
			continue
		}
		d.leader[s] = true
		if _, known := d.insts[s]; !known {
			todo = append(todo, s)
		}
	}
	return todo
}

// control records where an instruction goes and reports whether it ends its
// block.
func (d *decoder) control(in *x86.Inst) bool {
	switch in.Control {
	case x86.Next:
		return d.runsOut(in)
	case x86.Call, x86.IndirectCall:
		return d.call(in)
	case x86.Return, x86.Trap:
		d.succs[in.PC] = []uint64{leave}
	case x86.Jump:
		d.succs[in.PC] = []uint64{d.jumpTarget(in)}
	case x86.CondJump:
		next := in.End()
		if !d.inside(next) {
			next = leave
		}
		d.succs[in.PC] = []uint64{next, d.jumpTarget(in)}
	case x86.IndirectJump:
		d.succs[in.PC] = d.indirectJump(in)
	}
	return true
}

// runsOut ends the block of an instruction behind which the function ends.
func (d *decoder) runsOut(in *x86.Inst) bool {
	if d.inside(in.End()) {
		return false
	}
	d.succs[in.PC] = []uint64{leave}
	return true
}

// call records a call. A call behind which the function ends does not return:
// compilers put nothing behind a call of a noreturn function.
func (d *decoder) call(in *x86.Inst) bool {
	c := Call{Site: in.PC, Return: in.End(), Target: in.Target}
	c.NoReturn = in.Control == x86.Call && d.code.NoReturn(in.Target) || !d.inside(in.End())
	d.calls = append(d.calls, c)
	if c.NoReturn {
		d.succs[in.PC] = []uint64{leave}
	}
	return c.NoReturn
}

// jumpTarget is where a direct jump goes: a place in the function, or leave
// for a tail call. A jump into a cold part adds it to the function.
func (d *decoder) jumpTarget(in *x86.Inst) uint64 {
	if d.inside(in.Target) || d.addColdPart(in.Target) {
		return in.Target
	}
	d.calls = append(d.calls, Call{Site: in.PC, Target: in.Target, Tail: true})
	return leave
}

// sweep decodes what no path from the entry leads to: landing pads of
// exceptions, and targets of jumps that were not resolved.
func (d *decoder) sweep() {
	for i := 0; i < len(d.g.Ranges); i++ {
		r := d.g.Ranges[i]
		for pc := r.Start; pc < r.End; {
			if in, known := d.insts[pc]; known {
				pc = in.End()
				continue
			}
			in, err := x86.Decode(d.at(pc), pc)
			if err != nil {
				pc++
				continue
			}
			if padding(&in, d.at(pc)) {
				pc = in.End()
				continue
			}
			d.follow(pc)
			if _, known := d.insts[pc]; !known {
				pc++
			}
		}
	}
}

// padding reports whether an instruction stands only to align what follows.
func padding(in *x86.Inst, code []byte) bool {
	if in.Control == x86.Trap {
		return code[0] == 0xcc
	}
	return isNop(code[:in.Len])
}

// isNop recognises the NOPs of assemblers: 90, 66 90, 0F 1F with prefixes.
func isNop(b []byte) bool {
	for len(b) > 0 && (b[0] == 0x66 || b[0] == 0x2e) {
		b = b[1:]
	}
	return len(b) == 1 && b[0] == 0x90 || len(b) >= 3 && b[0] == 0x0f && b[1] == 0x1f
}
