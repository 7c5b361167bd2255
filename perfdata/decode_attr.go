package perfdata

import "math/bits"

// Sizes of perf_event_attr as published, PERF_ATTR_SIZE_VER*.
const (
	attrSizeVer0 = 64
	attrSizeVer9 = 144 // the size this package knows all fields of
)

// decodeAttr reads a perf_event_attr from the first bytes of b. Its own size
// field is believed up to len(b); missing fields are zero, unknown ones behind
// attrSizeVer9 ignored. It returns false if b is too short for any attr.
func decodeAttr(b []byte, big bool) (Attr, bool) {
	if len(b) < attrSizeVer0 {
		return Attr{}, false
	}
	size := load32(b[4:], big)
	if size == 0 {
		size = attrSizeVer0 // PERF_ATTR_SIZE_VER0, as sys_perf_event_open takes it
	}
	if size < attrSizeVer0 {
		return Attr{}, false
	}
	var full [attrSizeVer9]byte
	copy(full[:], b[:min(uint64(size), uint64(len(b)), attrSizeVer9)])
	c := cursor{b: full[:], big: big}
	var a Attr
	a.Type = EventType(c.u32())
	c.u32()
	a.Size = size
	a.Config = c.u64()
	a.SamplePeriod = c.u64()
	a.SampleType = SampleFormat(c.u64())
	a.ReadFormat = ReadFormat(c.u64())
	a.Flags = attrFlags(c.u64(), big)
	a.WakeupEvents = c.u32()
	a.BPType = c.u32()
	a.Config1 = c.u64()
	a.Config2 = c.u64()
	a.BranchSampleType = BranchSample(c.u64())
	a.SampleRegsUser = c.u64()
	a.SampleStackUser = c.u32()
	a.ClockID = c.i32()
	a.SampleRegsIntr = c.u64()
	a.AuxWatermark = c.u32()
	a.SampleMaxStack = c.u16()
	c.u16()
	a.AuxSampleSize = c.u32()
	a.AuxAction = c.u32()
	a.SigData = c.u64()
	a.Config3 = c.u64()
	a.Config4 = c.u64()
	return a, true
}

// attrFlags puts the bit fields of the flag word into little-endian order. A
// big-endian compiler allots bit fields from the most significant bit on, so
// single bits are mirrored; precise_ip, two bits wide, keeps its own order.
func attrFlags(w uint64, big bool) AttrFlags {
	if !big {
		return AttrFlags(w)
	}
	f := AttrFlags(bits.Reverse64(w))
	hi, lo := f&flagPreciseIP0, f&flagPreciseIP1
	f &^= flagPreciseIP0 | flagPreciseIP1
	return f | hi<<1 | lo>>1
}

// branchFlags does the same for the flag word of perf_branch_entry: fields of
// 1, 1, 1, 1, 16, 4, 2, 4 and 3 bits.
func branchFlags(w uint64, big bool) BranchFlags {
	if !big {
		return BranchFlags(w)
	}
	var f BranchFlags
	at := 0
	for _, width := range [...]int{1, 1, 1, 1, 16, 4, 2, 4, 3} {
		v := w >> (64 - at - width) & (1<<width - 1)
		f |= BranchFlags(v << at)
		at += width
	}
	return f
}
