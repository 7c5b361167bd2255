package correct

import (
	"encoding/binary"
	"math"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/image/x86"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// recordKind is what a branch record stands for.
type recordKind uint8

const (
	otherBranch  recordKind = iota // a jump, or a return beside calls
	callRecord                     // from a call instruction to the callee's entry
	returnRecord                   // from the callee to behind the call instruction, standing in for the call
	unknownKind                    // no type saved, and no code to decode
	kernelEntry                    // system call, interrupt, exception, or the return from one
	outsideMode                    // in a mode the event does not count
	numKinds
)

// rejects counts records that are not used, by reason.
type rejects struct {
	empty    int64 // from or to is 0
	repeated int64 // the newest, again
	kinds    [numKinds]int64
}

func (r *rejects) add(o *rejects) {
	r.empty += o.empty
	r.repeated += o.repeated
	for k := range r.kinds {
		r.kinds[k] += o.kinds[k]
	}
}

// recordReader turns branch stacks into numbered records. A record's type is
// the pair of its ends; what a type is (a call or not) is found out once.
type recordReader struct {
	store *image.Store // nil: code cannot be decoded
	arm   bool
	types pairs // (from, to), Locs
	kinds []recordKind

	// Of the latest stack, newest record first. gaps[i] is the time from the
	// next older record to record i, in cycles, saturated at what the hardware
	// counts; records left out are jumped over.
	ids  []uint32
	gaps []float32

	rejects            rejects
	twins              [2]int64 // stacks in which only the newest two records, or the next two, are alike
	records, saturated int64
	cycles             bool // some record has a cycle count
}

func newRecordReader(opt Options) recordReader {
	return recordReader{store: opt.Store, arm: opt.Meta != nil && opt.Meta.Arch == "aarch64"}
}

// maxCycles is where the 16 bits of perf_branch_entry.cycles stop.
const maxCycles = math.MaxUint16

// read fills ids and gaps from a sample's branch stack.
func (r *recordReader) read(s *session.Sample, mode branchMode) {
	r.ids, r.gaps = r.ids[:0], r.gaps[:0]
	b := s.Branches
	if r.repeats(b) {
		b = b[1:]
		r.rejects.repeated++
	}
	raw := s.Raw != nil && len(s.Raw.Branches) == len(s.Branches)
	first := len(s.Branches) - len(b)
	for i := range b {
		if raw {
			if x := &s.Raw.Branches[first+i]; x.From == 0 || x.To == 0 {
				r.rejects.empty++
				r.jump(b[i].Flags)
				continue
			}
		}
		id, fresh := r.types.id(uint32(b[i].From), uint32(b[i].To))
		if fresh {
			r.kinds = append(r.kinds, r.kind(s, &b[i], mode, first+i, raw))
		}
		if k := r.kinds[id]; k >= unknownKind {
			r.rejects.kinds[k]++
			r.jump(b[i].Flags)
			continue
		}
		c := b[i].Flags.Cycles()
		if c > 0 {
			r.cycles = true
			if c == maxCycles {
				r.saturated++
			}
		}
		r.records++
		r.ids = append(r.ids, id)
		r.gaps = append(r.gaps, float32(c))
	}
}

// repeats reports whether the processor wrote the newest record twice (seen on
// Skylake, and under hypervisors; BOLT mends it too). A program can repeat a
// record as well, cycles and all, but does so anywhere in the stack: only if
// the newest two are alike far more often than the next two is it the
// processor.
func (r *recordReader) repeats(b []session.Branch) bool {
	if len(b) < 4 {
		return false
	}
	if b[1] == b[2] && b[2] != b[3] {
		r.twins[1]++
	}
	if b[0] != b[1] || b[1] == b[2] {
		return false
	}
	r.twins[0]++
	return r.twins[0] > 20+3*r.twins[1]
}

// jump adds the time before a record that is left out to that before the next
// newer one.
func (r *recordReader) jump(f perfdata.BranchFlags) {
	if n := len(r.gaps); n > 0 {
		r.gaps[n-1] += float32(f.Cycles())
	}
}

// kind finds out what records with these ends are.
func (r *recordReader) kind(s *session.Sample, b *session.Branch, mode branchMode, i int, raw bool) recordKind {
	if raw {
		from, to := s.Raw.Branches[i].From>>63 != 0, s.Raw.Branches[i].To>>63 != 0
		switch {
		case from != to:
			return kernelEntry
		case from && s.Event.Flags&perfdata.FlagExcludeKernel != 0, !from && s.Event.Flags&perfdata.FlagExcludeUser != 0:
			return outsideMode
		}
	}
	k := b.Flags.Kind()
	switch k {
	case perfdata.KindCall, perfdata.KindIndirectCall, perfdata.KindCondCall:
		if mode == onlyReturns {
			return otherBranch
		}
		return callRecord
	case perfdata.KindReturn, perfdata.KindCondReturn:
		if mode == onlyReturns {
			return returnRecord
		}
		return otherBranch
	case perfdata.KindSyscall, perfdata.KindSysret, perfdata.KindEret, perfdata.KindIRQ, perfdata.KindSerror:
		return kernelEntry
	case perfdata.KindUnknown:
		return r.decode(b, mode)
	}
	return otherBranch
}

// decode looks at the branch instruction of a record without a type.
func (r *recordReader) decode(b *session.Branch, mode branchMode) recordKind {
	var code []byte
	var at image.Addr
	if r.store != nil {
		at = r.store.Addr(b.From)
		code = at.Image.Text(at.Offset, 15)
	}
	var isCall, isReturn bool
	switch {
	case r.arm && len(code) >= 4:
		isCall, isReturn = armControl(binary.LittleEndian.Uint32(code))
	case len(code) > 0 && !r.arm:
		in, err := x86.Decode(code, at.Offset)
		if err != nil {
			return undecoded(mode)
		}
		// A call of the next instruction reads the instruction pointer
		// (X86_BR_ZERO_CALL in arch/x86/events/utils.c).
		isCall = in.IsCall() && !(in.Control == x86.Call && in.Target == in.End())
		isReturn = in.Control == x86.Return
	default:
		return undecoded(mode)
	}
	switch {
	case isCall && mode != onlyReturns:
		return callRecord
	case isReturn && mode == onlyReturns:
		return returnRecord
	case mode != allBranches:
		return kernelEntry // what the filter also lets through: int, far calls
	}
	return otherBranch
}

// undecoded is what records are by the hardware's filter alone.
func undecoded(mode branchMode) recordKind {
	switch mode {
	case onlyCalls, someCalls:
		return callRecord
	case onlyReturns:
		return returnRecord
	}
	return unknownKind
}

// armControl recognises BL and BLR, and RET, of A64 (Arm ARM, C4.1.66).
func armControl(w uint32) (isCall, isReturn bool) {
	return w&0xfc000000 == 0x94000000 || w&0xfffffc1f == 0xd63f0000, w&0xfffffc1f == 0xd65f0000
}

// isEdge reports whether records of a type are calls.
func (r *recordReader) isEdge(id uint32) bool {
	return r.kinds[id] == callRecord || r.kinds[id] == returnRecord
}

// adopt takes over the types of another reader of the same store and returns
// their numbers here.
func (r *recordReader) adopt(o *recordReader) []uint32 {
	ids := make([]uint32, o.types.len())
	for i := range ids {
		id, fresh := r.types.id(o.types.at(uint32(i)))
		if fresh {
			r.kinds = append(r.kinds, o.kinds[i])
		}
		ids[i] = id
	}
	r.rejects.add(&o.rejects)
	r.records += o.records
	r.saturated += o.saturated
	r.cycles = r.cycles || o.cycles
	return ids
}
