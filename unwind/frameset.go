package unwind

// FrameState says whether a function has made its frame pointer its own where
// it is.
type FrameState uint8

const (
	FrameUnknown FrameState = iota // no call frame information
	FrameOwn                       // the frame pointer is at the function's frame record
	FrameCallers                   // it is still the caller's, or used for something else
	FrameImplied                   // call frame information does not tell: Go keeps frame pointers by convention only
)

// FrameState reads off the call frame information at a link-time address
// whether the frame pointer points to the frame record: by the rules for the
// return address and the saved frame pointer, which say where that lies. While
// it is still the caller's, a callchain by frame pointers lacks the caller of
// the function.
func (m *Module) FrameState(vaddr uint64, machine string) FrameState {
	a := archOf(machine, 2)
	if a == nil {
		return FrameUnknown
	}
	row, _ := m.Table().Row(vaddr)
	switch {
	case row == nil || row.ra.kind == ruleUndefined || row.signal:
		return FrameUnknown
	case m.goBin:
		return FrameImplied
	case row.cfa.kind != ruleRegPlusOff: // a realigned frame is found through its frame pointer
		return FrameUnknown
	case row.cfa.src == a.fp && row.cfa.off == int64(2*a.word):
		return FrameOwn
	case a.hasLR && row.cfa.src == a.fp && row.ra.kind == ruleOffset: // the record may lie anywhere in the frame
		return FrameOwn
	}
	return FrameCallers
}
