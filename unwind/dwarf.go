package unwind

import "github.com/perfcorrect/perfcorrect/perfdata"

// Source is what the unwinder reads of an object; package image's ELF files
// are sources. Addresses are the object's own, as linked.
type Source interface {
	// UnwindSections returns the call frame information, empty if there is none.
	UnwindSections() (Sections, error)
	// ReadVaddr fills p with bytes of read-only segments from vaddr on, and
	// returns how many there were.
	ReadVaddr(p []byte, vaddr uint64) int
}

// Module is an object as the unwinder sees it. It remembers what it has
// looked up, and belongs to one goroutine.
type Module struct {
	src   Source
	table *Table
	goBin bool
	err   error
}

// NewModule makes a Module; nothing is read before it is needed.
func NewModule(src Source) *Module { return &Module{src: src} }

// Table returns the module's call frame information, empty if there is none.
func (m *Module) Table() *Table {
	if m.table == nil {
		var s Sections
		s, m.err = m.src.UnwindSections()
		m.table, m.goBin = NewTable(s), s.Go
	}
	return m.table
}

// Err is what kept the call frame information from being read.
func (m *Module) Err() error { return m.err }

// AddressSpace is the executable memory of a process at the time of a sample.
type AddressSpace interface {
	// Find returns what is mapped at addr and the link-time address it has
	// there. ok is false where there is no code; m is nil for code without an
	// object, as JIT compilers make it.
	Find(addr uint64) (m *Module, vaddr uint64, ok bool)
}

// DWARFStats counts how the callers of frames were found, and what was wrong.
type DWARFStats struct {
	CFI          uint64 // by call frame information
	FramePointer uint64 // by frame pointer, for want of it
	Code         uint64 // by recognising instructions that set up or leave a frame
	BadCFI       uint64 // frames whose call frame information was malformed
	Repaired     uint64 // stacks in which a frame was put back (Repair)
	PutBack      uint64 // frames put back
	Dropped      uint64 // entries of kernel chains found wrong
}

// Unwinder unwinds user stacks from the registers and the copy of the top of
// the stack in a sample (PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER). It is
// a machine for one goroutine, to be used for all samples of a recording.
type Unwinder struct {
	Stats DWARFStats

	machine string
	arch    *arch
	regs    registers
	old     registers // the callee's, while the caller's are computed from them
	pc      uint64
	exact   bool // pc was executed or interrupted, it is no return address

	space  AddressSpace
	code   bool    // pc is in executable memory
	mod    *Module // where pc is, nil if in no object
	vaddr  uint64  // pc there, less one for a return address
	bias   uint64  // run-time less link-time addresses
	row    *Row    // that holds at pc, nil if there is none
	badRow bool    // because it is malformed

	base  uint64 // address of stack[0]
	stack []byte
	full  bool    // all bytes asked for were copied: there may be more
	lost  failure // why registers are missing
	put   []Frame // found by Repair
}

// NewUnwinder makes an Unwinder for recordings of a machine (uname -m, as in
// perfdata.Meta.Arch).
func NewUnwinder(machine string) *Unwinder { return &Unwinder{machine: machine} }

// failure says why a value could not be had.
type failure uint8

const (
	failNone      failure = iota
	failShort             // it lies beyond the copied part of the stack
	failRange             // it lies where no stack is
	failRegister          // it depends on a register that is not known
	failMalformed         // the rule makes no sense
)

func (f failure) outcome() Outcome {
	switch f {
	case failShort:
		return DumpTooShort
	case failRegister:
		return NoRegister
	}
	return Corrupt
}

// CanUnwind reports whether s holds what User needs.
func (u *Unwinder) CanUnwind(s *perfdata.Sample) bool {
	return len(s.StackUser) > 0 && len(s.RegsUser.Values) > 0 && archOf(u.machine, s.RegsUser.ABI) != nil
}

// User appends the user frames of s to dst, leaf first, unwound in space.
// Without registers (a kernel thread) there are none.
func (u *Unwinder) User(dst []Frame, s *perfdata.Sample, space AddressSpace) ([]Frame, Outcome) {
	if o, ok := u.begin(s, space); !ok {
		return dst, o
	}
	dst = append(dst, u.frame())
	for n := u.maxFrames(); n > 0; n-- {
		more, outcome := u.step()
		if !more {
			return dst, outcome
		}
		dst = append(dst, u.frame())
	}
	return dst, Corrupt
}

// maxFrames bounds a stack: a frame takes a word at least, save for those of
// signal handlers and of leaves.
func (u *Unwinder) maxFrames() int { return len(u.stack)/u.arch.word + 64 }

// begin takes over the registers and the stack of a sample.
func (u *Unwinder) begin(s *perfdata.Sample, space AddressSpace) (o Outcome, ok bool) {
	if s.RegsUser.ABI == 0 || len(s.RegsUser.Values) == 0 {
		return EndOfStack, false
	}
	if u.arch = archOf(u.machine, s.RegsUser.ABI); u.arch == nil {
		return NoCFI, false
	}
	u.regs.load(u.arch, &s.RegsUser)
	if !u.regs.has(u.arch.pc) || !u.regs.has(u.arch.sp) {
		return NoRegister, false
	}
	u.pc, u.exact = u.regs.v[u.arch.pc], true
	u.base, u.stack = u.regs.v[u.arch.sp], s.StackUser
	u.full = uint64(len(s.StackUser)) >= s.StackUserMax
	u.space, u.lost = space, failNone
	u.locate()
	return EndOfStack, true
}
