package unwind

import "github.com/perfcorrect/perfcorrect/perfdata"

// A PMU in call-stack mode (Haswell and later) records calls, and forgets each
// when it returns: the branch records left are the calls on the stack, as far
// as there were registers for them (arch/x86/events/intel/lbr.c). perf record
// --call-graph lbr asks for it.

// CallStack remembers the calls of one thread from sample to sample. Calls
// further out than the PMU has registers for are missing in a sample, but
// where its outermost call is one the sample before has as well, what lay
// beyond that then still does (perf script --stitch-lbr;
// tools/perf/util/machine.c, has_stitched_lbr).
type CallStack struct {
	calls []perfdata.Branch // of the last sample, newest first
	spare []perfdata.Branch // those of the one before, to be overwritten
	read  int               // of these, the ones it had itself; the others were stitched to it
	index uint64            // the register of the newest
	cut   bool              // calls beyond the last are missing
}

// maxStitched bounds the calls kept: as many as the kernel gives frames at most.
const maxStitched = 1 << 10

// HasCallStack reports whether the branch records of s are a call stack. With
// no record at all, the callchain is all there is.
func HasCallStack(s *perfdata.Sample) bool {
	return s.Event != nil && s.Event.BranchSampleType&perfdata.BranchCallStack != 0 && len(s.Branches) > 0
}

// Frames appends the frames of a sample that HasCallStack to dst, leaf first:
// those of the kernel from the callchain, up to and with the first user one;
// then the calls recorded. These are the addresses of the call instructions
// themselves, so they are no return addresses. size is how many registers the
// PMU has, 0 if that is not known; then nothing is stitched.
//
// The leaf is the sample's ip, which with precise events fits the calls
// recorded better than what the chain begins with: that is where the
// interrupt came. (perf has neither, but the entry of the function called
// last.)
//
// A sample that was not in user mode and whose chain has no user part, of a
// kernel thread for instance, has none of the calls: they are of the thread
// that ran before (perf does the same).
func (c *CallStack) Frames(dst []Frame, s *perfdata.Sample, size int) ([]Frame, Outcome) {
	n := len(dst)
	dst, outcome := Callchain(dst, s)
	user := n
	for user < len(dst) && dst[user].Mode != ModeUser {
		user++
	}
	if user == len(dst) {
		return dst, outcome
	}
	dst = dst[:user+1]
	if user == n && s.Has&perfdata.FieldIP != 0 && Mode(s.Misc&perfdata.MiscCPUModeMask) == ModeUser {
		dst[n].Addr = s.IP
	}
	c.next(s, size)
	for _, b := range c.calls {
		dst = append(dst, Frame{Addr: b.From, Mode: ModeUser})
	}
	if c.cut {
		return dst, Truncated
	}
	return dst, EndOfStack
}

// Stitched returns how many calls the last sample got from those before.
func (c *CallStack) Stitched() int { return len(c.calls) - c.read }

// next replaces the last sample's calls by those of s.
func (c *CallStack) next(s *perfdata.Sample, size int) {
	var beyond []perfdata.Branch
	cut := size > 0 && len(s.Branches) >= size
	if i, ok := c.meets(s, size); ok {
		beyond, cut = c.calls[i+1:], c.cut
	}
	beyond = beyond[:min(len(beyond), max(0, maxStitched-len(s.Branches)))]
	calls := append(append(c.spare[:0], s.Branches...), beyond...)
	*c = CallStack{calls: calls, spare: c.calls, read: len(s.Branches), index: s.BranchHWIndex, cut: cut}
}

// meets finds the outermost call of s among those of the last sample. It must
// be in the same register, equal in all, and so must be the calls after it as
// far as they are the same. Registers are used in turn: the newest call is in
// the one the sample tells (PERF_SAMPLE_BRANCH_HW_INDEX).
func (c *CallStack) meets(s *perfdata.Sample, size int) (i int, ok bool) {
	const unknown = ^uint64(0)
	n := len(s.Branches)
	if size <= 0 || n > size || c.read == 0 || s.BranchHWIndex >= uint64(size) || c.index == unknown {
		return 0, false
	}
	m := uint64(size)
	base := (s.BranchHWIndex + m - uint64(n-1)%m) % m
	i = int((c.index + m - base) % m)
	if i >= c.read || c.calls[i] != s.Branches[n-1] {
		return 0, false
	}
	return i, true
}
