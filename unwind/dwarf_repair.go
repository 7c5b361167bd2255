package unwind

import "github.com/perfcorrect/perfcorrect/perfdata"

// A callchain by frame pointers lacks the caller of the leaf wherever the
// leaf's frame is not set up: in prologues, epilogues, functions without a
// frame, and the fast paths compilers shrink-wrap so that they need none. The
// kernel starts from the frame pointer register, which there still is the
// caller's, so that the first return address it finds is the caller's own.
//
// Call frame information tells when: the chain is right from the frame on
// whose frame record, by its rules, is where the frame pointer register
// points. Frames before it are unwound with the registers (pc, sp, fp; on
// AArch64 lr) and some bytes from the top of the stack, and put back.

// Repair mends the user part of a callchain: dst[user:], as Callchain made it
// from s, which also holds user registers and the top of the stack. outcome is
// the chain's. It returns the frames, how many of them were put back (they
// follow the leaf), and the outcome.
func (u *Unwinder) Repair(dst []Frame, user int, outcome Outcome, s *perfdata.Sample, space AddressSpace) ([]Frame, int, Outcome) {
	if _, ok := u.begin(s, space); !ok || user >= len(dst) || !u.regs.has(u.arch.fp) {
		return dst, 0, outcome
	}
	fp := u.regs.v[u.arch.fp]
	if u.onFrameRecord(fp) { // the chain is right, as it mostly is
		return dst, 0, outcome
	}
	u.put = append(u.put[:0], u.frame())
	for n := u.maxFrames(); n > 0; n-- {
		more, end := u.step()
		if !more {
			return u.splice(dst, user, outcome, end, fp)
		}
		u.put = append(u.put, u.frame())
		if u.onFrameRecord(fp) {
			break
		}
	}
	return u.insert(dst, user, 1), len(u.put) - 1, outcome
}

// onFrameRecord reports whether the row of the current frame puts the saved
// frame pointer and the return address where fp points: the chain from fp on
// is this frame's. It needs no memory.
func (u *Unwinder) onFrameRecord(fp uint64) bool {
	if u.row == nil { // no call frame information: believe the chain
		return u.regs.has(u.arch.fp) && u.regs.v[u.arch.fp] == fp
	}
	if !u.regs.has(u.arch.fp) || u.regs.v[u.arch.fp] != fp || u.row.ra.kind != ruleOffset {
		return false
	}
	u.regs.set(u.arch.pc, u.pc)
	cfa, fail := u.cfa(u.row)
	if fail != failNone || cfa+uint64(u.row.ra.off) != fp+uint64(u.arch.word) {
		return false
	}
	for i := range u.row.rules {
		if r := &u.row.rules[i]; r.reg == u.arch.fp {
			return r.kind == ruleOffset && cfa+uint64(r.off) == fp
		}
	}
	return false
}

// insert replaces the leaf and the following skip-1 entries of the chain
// dst[user:] by the frames unwound, u.put, and counts.
func (u *Unwinder) insert(dst []Frame, user, skip int) []Frame {
	rest := dst[user+skip:]
	added := len(u.put) - skip
	u.Stats.Dropped += uint64(skip - 1)
	if n := len(u.put) - 1; n > 0 {
		u.Stats.Repaired++
		u.Stats.PutBack += uint64(n)
	}
	switch {
	case added > 0:
		n := len(dst)
		dst = append(dst, u.put[:added]...) // room
		copy(dst[user+skip+added:], dst[user+skip:n])
	case added < 0:
		dst = dst[:user+skip+added+copy(dst[user+skip+added:], rest)]
	}
	copy(dst[user:], u.put)
	return dst
}

// splice joins the frames unwound until the bytes of the stack were used up,
// or the stack was at its end, with what of the chain can still be true.
func (u *Unwinder) splice(dst []Frame, user int, outcome, end Outcome, fp uint64) ([]Frame, int, Outcome) {
	put := len(u.put) - 1
	all := len(dst) - user
	switch last := u.put[put]; {
	case end == EndOfStack: // nothing in the chain is true
		return u.insert(dst, user, all), put, end
	case u.regs.has(u.arch.fp) && u.regs.v[u.arch.fp] == fp:
		// No frame so far has used the frame pointer: the chain is that of
		// some caller further out, the next if it has a frame.
		return u.insert(dst, user, 1), put, outcome
	default:
		// The frame the chain begins with was passed, so it is among those
		// unwound; or the register was used for something else.
		for i := user + 1; i < len(dst) && put > 0; i++ {
			if dst[i].Addr == last.Addr {
				return u.insert(dst, user, i-user+1), put - (i - user), outcome
			}
		}
		return u.insert(dst, user, all), put, end
	}
}
