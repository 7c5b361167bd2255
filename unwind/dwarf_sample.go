package unwind

import "github.com/perfcorrect/perfcorrect/perfdata"

// fullDump is the size of a stack dump from which on it is taken for the whole
// stack; a smaller one beside a callchain is there to mend the chain (Repair).
// Samples are at most 64 KiB, and dumps for unwinding 8 KiB or more.
const fullDump = 1024

// Sample appends all frames of s to dst, leaf first: those of the kernel and
// others before the user's from the callchain, the user's by the best evidence
// the sample holds.
func (u *Unwinder) Sample(dst []Frame, s *perfdata.Sample, space AddressSpace) ([]Frame, Outcome) {
	n := len(dst)
	dst, outcome := Callchain(dst, s)
	if !u.CanUnwind(s) {
		return dst, outcome
	}
	user := n
	for user < len(dst) && dst[user].Mode != ModeUser {
		user++
	}
	if user == len(dst) || len(s.StackUser) >= fullDump || outcome == Empty {
		return u.User(dst[:user], s, space)
	}
	dst, _, outcome = u.Repair(dst, user, outcome, s, space)
	return dst, outcome
}
