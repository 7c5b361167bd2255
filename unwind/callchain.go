package unwind

import "github.com/perfcorrect/perfcorrect/perfdata"

// Mode is the processor mode a frame was executed in, with the values of
// PERF_RECORD_MISC_CPUMODE.
type Mode uint8

const (
	ModeUnknown     Mode = 0
	ModeKernel      Mode = 1
	ModeUser        Mode = 2
	ModeHypervisor  Mode = 3
	ModeGuestKernel Mode = 4
	ModeGuestUser   Mode = 5
)

// Frame is one entry of a stack. Return tells a return address from an
// instruction pointer.
type Frame struct {
	Addr   uint64
	Return bool
	Mode   Mode
}

// Outcome says why a stack ends where it does.
type Outcome uint8

const (
	// EndOfStack: the unwinder met the outermost frame, or the kernel found no
	// further frame. A frame-pointer chain through code without frame pointers
	// ends like this too; nothing in the recording tells.
	EndOfStack Outcome = iota
	// Truncated: as many frames as the recording allows; outer ones are missing.
	Truncated
	// DumpTooShort: the next frame lies beyond the copied part of the stack.
	DumpTooShort
	// NoCFI: no call frame information for the last frame's code, and no
	// frame pointer to go on with.
	NoCFI
	// DidNotAdvance: the caller's frame would not lie above the callee's.
	DidNotAdvance
	// Corrupt: a frame's return address cannot be one (zero, not canonical).
	Corrupt
	// Empty: the sample has no stack besides its instruction pointer.
	Empty
	// Deferred: the user part of the chain was to be delivered later and has
	// not been found (yet).
	Deferred
	// NoRegister: the caller depends on a register that was not recorded, or
	// was not kept by a frame in between.
	NoRegister

	// NumOutcomes is the number of outcomes, for tables indexed by them.
	NumOutcomes
)

var outcomeNames = [NumOutcomes]string{
	"end of stack", "truncated", "stack dump too short", "no unwind information",
	"did not advance", "corrupt", "empty", "user part missing", "register missing",
}

func (o Outcome) String() string {
	if o < NumOutcomes {
		return outcomeNames[o]
	}
	return "unknown outcome"
}

// Cut reports whether the stack is known to lack outer frames.
func (o Outcome) Cut() bool { return o != EndOfStack && o != Empty }

// DefaultMaxStack is the number of frames the kernel collects unless told
// otherwise (sysctl kernel.perf_event_max_stack, PERF_MAX_STACK_DEPTH).
const DefaultMaxStack = 127

// Callchain appends the frames of the callchain the kernel collected with s
// to dst, leaf first, without its context markers. A sample without a chain
// yields its ip alone. A chain whose user part is deferred yields the kernel's
// frames and Deferred; DeferredCookie finds the rest.
//
// A chain with an entry that cannot be a return address is Corrupt: from there
// on it means nothing, and probably the frame before has lost its caller. All
// its frames are given nevertheless, as perf prints them; but impossible
// addresses are given as 0, so that stacks which differ only in garbage are
// the same stack.
//
// The chain's own first entry is the leaf even if it differs from s.IP, as it
// can with precise events: there the chain was taken at the interrupt and
// s.IP at the event, and perf prints the chain.
func Callchain(dst []Frame, s *perfdata.Sample) ([]Frame, Outcome) {
	mode := Mode(s.Misc & perfdata.MiscCPUModeMask)
	n := len(dst)
	dst, outcome := chain(dst, s.Callchain, mode, maxStack(s.Event))
	if len(dst) == n {
		if s.Has&perfdata.FieldIP == 0 {
			return dst, outcome
		}
		dst = append(dst, Frame{Addr: s.IP, Mode: mode})
		if outcome == EndOfStack {
			outcome = Empty
		}
	}
	return dst, outcome
}

// UserChain appends the frames of a chain collected when the thread returned
// to user mode (PERF_RECORD_CALLCHAIN_DEFERRED).
func UserChain(dst []Frame, c *perfdata.CallchainDeferred) ([]Frame, Outcome) {
	return chain(dst, c.Callchain, ModeUser, maxStack(c.Event))
}

// DeferredCookie returns the cookie of the record that will hold the user
// part of s's callchain: the entry after PERF_CONTEXT_USER_DEFERRED
// (kernel/events/callchain.c, get_perf_callchain).
func DeferredCookie(s *perfdata.Sample) (cookie uint64, ok bool) {
	c := s.Callchain
	if len(c) >= 2 && c[len(c)-2] == perfdata.ContextUserDeferred {
		return c[len(c)-1], true
	}
	return 0, false
}

func maxStack(e *perfdata.Event) int {
	if e != nil && e.SampleMaxStack != 0 {
		return int(e.SampleMaxStack)
	}
	return DefaultMaxStack
}

// chain walks the entries of a callchain. The kernel limits addresses and
// markers separately (struct perf_callchain_entry_ctx), so only addresses
// count against max. Instruction pointers are taken as they are: a jump
// through a null pointer is a fact, not a fault of the unwinder.
func chain(dst []Frame, entries []uint64, mode Mode, max int) ([]Frame, Outcome) {
	n := len(dst)
	ret := false
	outcome := EndOfStack
	for _, addr := range entries {
		if addr >= perfdata.ContextMax {
			if addr == perfdata.ContextUserDeferred {
				return dst, Deferred
			}
			if m := contextMode(addr); m != ModeUnknown {
				mode, ret = m, false
			}
			continue
		}
		if ret && !plausibleReturn(addr, mode) {
			addr, outcome = 0, Corrupt
		}
		dst = append(dst, Frame{Addr: addr, Return: ret, Mode: mode})
		ret = true
	}
	if outcome == EndOfStack && len(dst)-n == max {
		outcome = Truncated
	}
	return dst, outcome
}

func contextMode(marker uint64) Mode {
	switch marker {
	case perfdata.ContextKernel:
		return ModeKernel
	case perfdata.ContextUser:
		return ModeUser
	case perfdata.ContextHV:
		return ModeHypervisor
	case perfdata.ContextGuestKernel:
		return ModeGuestKernel
	case perfdata.ContextGuestUser, perfdata.ContextGuest:
		return ModeGuestUser
	}
	return ModeUnknown
}

// plausibleReturn reports whether addr can be a return address in mode.
// Walking frame pointers through code that uses the register for something
// else ends in small numbers, text, and pointers of the wrong half. The first
// page is never code (vm.mmap_min_addr), and no 64-bit architecture reaches
// into the top 12 bits of either half: x86-64 with five-level tables uses 56
// bits but gives high addresses only on request, arm64 uses 52. The kernel of
// powerpc begins at 0xc000000000000000, its modules at 0xd000000000000000.
func plausibleReturn(addr uint64, mode Mode) bool {
	if addr < 0x1000 {
		return false
	}
	switch addr >> 52 {
	case 0:
		return true
	case 0xfff, 0xc00, 0xd00:
		return mode != ModeUser && mode != ModeGuestUser
	}
	return false
}
