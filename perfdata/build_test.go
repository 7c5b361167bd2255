package perfdata

import (
	"encoding/binary"
	"math/bits"
)

// builder makes recordings byte by byte, independently of Writer and in
// either byte order, so that they can also be wrong.
type builder struct {
	order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}
	big bool
}

func newBuilder(big bool) *builder {
	if big {
		return &builder{order: binary.BigEndian, big: true}
	}
	return &builder{order: binary.LittleEndian}
}

func (b *builder) u64(words ...uint64) []byte {
	var out []byte
	for _, w := range words {
		out = b.order.AppendUint64(out, w)
	}
	return out
}

func (b *builder) u32(words ...uint32) []byte {
	var out []byte
	for _, w := range words {
		out = b.order.AppendUint32(out, w)
	}
	return out
}

func (b *builder) pair(lo, hi uint32) []byte { return b.u32(lo, hi) }

// record puts a header in front of the parts.
func (b *builder) record(typ RecordType, misc Misc, parts ...[]byte) []byte {
	n := headerSize
	for _, p := range parts {
		n += len(p)
	}
	out := b.order.AppendUint32(make([]byte, 0, n), uint32(typ))
	out = b.order.AppendUint16(out, uint16(misc))
	out = b.order.AppendUint16(out, uint16(n))
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// attr is a perf_event_attr of the given size.
func (b *builder) attr(a Attr, size int) []byte {
	flags := uint64(a.Flags)
	if b.big {
		// As a big-endian compiler lays bit fields out, written the slow way.
		flags = 0
		for i := range 64 {
			if i != 15 && i != 16 && a.Flags>>i&1 != 0 {
				flags |= 1 << (63 - i)
			}
		}
		flags |= uint64(a.PreciseIP()) << 47
	}
	out := b.u32(uint32(a.Type), uint32(size))
	out = append(out, b.u64(a.Config, a.SamplePeriod, uint64(a.SampleType), uint64(a.ReadFormat), flags)...)
	out = append(out, b.u32(a.WakeupEvents, a.BPType)...)
	out = append(out, b.u64(a.Config1, a.Config2, uint64(a.BranchSampleType), a.SampleRegsUser)...)
	out = append(out, b.u32(a.SampleStackUser, uint32(a.ClockID))...)
	out = append(out, b.u64(a.SampleRegsIntr)...)
	out = append(out, b.u32(a.AuxWatermark)...)
	out = b.order.AppendUint16(out, a.SampleMaxStack)
	out = b.order.AppendUint16(out, 0)
	out = append(out, b.u32(a.AuxSampleSize, a.AuxAction)...)
	out = append(out, b.u64(a.SigData, a.Config3, a.Config4)...)
	for len(out) < size {
		out = append(out, 0xee) // fields of a later kernel
	}
	return out[:size]
}

// branch is a perf_branch_entry with flags in little-endian bit order.
func (b *builder) branch(from, to uint64, f BranchFlags) []byte {
	w := uint64(f)
	if b.big {
		// Mirror all bits, then mirror each wide field back.
		w = bits.Reverse64(w)
		w &^= 1<<60 - 1
		w |= uint64(f.Cycles()) << 44
		w |= uint64(f>>20&15) << 40
		w |= uint64(f.Spec()) << 38
		w |= uint64(f>>26&15) << 34
		w |= uint64(f.Priv()) << 31
	}
	return b.u64(from, to, w)
}

type builtEvent struct {
	attr Attr
	ids  []uint64
}

type builtFeature struct {
	id   FeatureID
	data []byte
}

// file is a recording in file mode.
func (b *builder) file(attrSize int, events []builtEvent, features []builtFeature, data []byte) []byte {
	out := make([]byte, fileHeaderSize)
	var entries []byte
	for _, ev := range events {
		entries = append(entries, b.attr(ev.attr, attrSize)...)
		entries = append(entries, b.u64(uint64(len(out)), uint64(8*len(ev.ids)))...)
		out = append(out, b.u64(ev.ids...)...)
	}
	attrs := len(out)
	out = append(out, entries...)
	start := len(out)
	out = append(out, data...)
	at := len(out) + 16*len(features)
	var bitmap [4]uint64
	var bodies []byte
	for _, f := range features {
		bitmap[f.id/64] |= 1 << (f.id % 64)
		out = append(out, b.u64(uint64(at+len(bodies)), uint64(len(f.data)))...)
		bodies = append(bodies, f.data...)
	}
	out = append(out, bodies...)
	head := append(b.magic(), b.u64(fileHeaderSize, uint64(attrSize+16), uint64(attrs), uint64(len(entries)),
		uint64(start), uint64(len(data)), 0, 0)...)
	copy(out, append(head, b.u64(bitmap[:]...)...))
	return out
}

func (b *builder) magic() []byte {
	if b.big {
		return []byte("2ELIFREP")
	}
	return []byte("PERFILE2")
}

// pipe is the same recording in pipe mode.
func (b *builder) pipe(attrSize int, events []builtEvent, features []builtFeature, data []byte) []byte {
	out := append(b.magic(), b.u64(pipeHeaderSize)...)
	for _, ev := range events {
		out = append(out, b.record(TypeHeaderAttr, 0, b.attr(ev.attr, attrSize), b.u64(ev.ids...))...)
	}
	for _, f := range features {
		out = append(out, b.record(TypeHeaderFeature, 0, b.u64(uint64(f.id)), f.data)...)
	}
	return append(out, data...)
}

// str is a string of a feature section.
func (b *builder) str(s string) []byte {
	n := (len(s) + 64) &^ 63
	return append(b.u32(uint32(n)), append([]byte(s), make([]byte, n-len(s))...)...)
}

// everySample has every field there is; both byte orders are built from it.
var everyAttr = Attr{
	Type: TypeHardware, Config: HWCPUCycles, SamplePeriod: 4000,
	SampleType: 1<<25 - 1 - FieldWeightStruct,
	ReadFormat: ReadTotalTimeEnabled | ReadTotalTimeRunning | ReadID | ReadGroup | ReadLost,
	Flags:      FlagDisabled | FlagMmap | FlagComm | FlagTask | FlagSampleIDAll | FlagMmap2 | 2*flagPreciseIP0 | FlagDeferCallchain,

	BranchSampleType: BranchAny | BranchUser | BranchHWIndex | BranchCounters | BranchTypeSave | BranchPrivSave,
	SampleRegsUser:   0x1f, SampleStackUser: 64, SampleRegsIntr: 7, ClockID: 1, SampleMaxStack: 127,
	AuxSampleSize: 8, SigData: 5, Config3: 6, Config4: 7,
}

const everyBranch = BranchFlags(1 | 8 | 777<<4 | 15<<20 | 2<<24 | 3<<26 | 1<<30)

func (b *builder) everySample(time uint64) []byte {
	stack := make([]byte, 64)
	for i := range stack {
		stack[i] = byte(i)
	}
	parts := [][]byte{
		b.u64(42),                       // identifier
		b.u64(0x401000), b.pair(10, 11), // ip, pid/tid
		b.u64(time, 0xadd0, 42, 43), b.pair(3, 0), b.u64(4000), // time, addr, id, stream, cpu, period
		b.u64(2, 900, 800, 1000, 42, 1, 2000, 52, 2), // group read
		b.u64(3, ContextUser, 0x401000, 0x402000),    // callchain
		b.u32(12), []byte("tracepoint!!"), // raw
		b.u64(2, 17), // branch stack with hw_idx
		b.branch(0x10, 0x20, everyBranch), b.branch(0x30, 0x40, 2), b.u64(71, 72),
		b.u64(2, 100, 101, 102, 103, 104), // regs user
		b.u64(64), stack, b.u64(48),       // stack user
		b.u64(55, 66, 77),          // weight, data_src, transaction
		b.u64(1, 200, 201, 202),    // regs intr
		b.u64(88, 99, 4096, 2<<20), // phys addr, cgroup, page sizes
		b.u64(8), []byte("auxdata!"),
	}
	return b.record(TypeSample, MiscUser|MiscExactIP, parts...)
}

// tail is the sample_id of everyAttr.
func (b *builder) tail(time uint64) []byte {
	var out []byte
	for _, p := range [][]byte{b.pair(10, 11), b.u64(time, 42, 43), b.pair(3, 0), b.u64(42)} {
		out = append(out, p...)
	}
	return out
}

func pad8(s string) []byte { return append([]byte(s), make([]byte, 8-len(s)%8)...) }

// everyRecord is one record of every kernel type, at rising times, 100 apart.
func (b *builder) everyRecord() []byte {
	var out []byte
	time := uint64(0)
	add := func(typ RecordType, misc Misc, parts ...[]byte) {
		time += 100
		out = append(out, b.record(typ, misc, append(parts, b.tail(time))...)...)
	}
	add(TypeMmap, MiscUser, b.pair(10, 11), b.u64(0x400000, 0x1000, 0), pad8("/bin/true"))
	add(TypeLost, 0, b.u64(42, 7))
	add(TypeComm, MiscCommExec, b.pair(10, 11), pad8("true"))
	add(TypeExit, 0, b.u32(10, 1, 11, 1), b.u64(300))
	add(TypeThrottle, 0, b.u64(500, 42, 43))
	add(TypeUnthrottle, 0, b.u64(600, 42, 43))
	add(TypeFork, 0, b.u32(12, 10, 12, 10), b.u64(700))
	add(TypeRead, 0, b.u32(10, 11), b.u64(1, 9, 8, 5, 42, 0))
	time += 100
	out = append(out, b.everySample(time)...)
	add(TypeMmap2, MiscUser, b.pair(10, 11), b.u64(0x500000, 0x2000, 0x1000), b.u32(8, 1), b.u64(99, 3), b.u32(5, 2), pad8("/lib/x.so"))
	add(TypeMmap2, MiscUser|MiscMmapBuildID, b.pair(10, 11), b.u64(0x600000, 0x2000, 0x1000),
		append([]byte{16, 0, 0, 0}, "0123456789abcdef\x00\x00\x00\x00"...), b.u32(5, 2), pad8("/lib/y.so"))
	add(TypeAux, 0, b.u64(1, 2, 3))
	add(TypeItraceStart, 0, b.u32(10, 11))
	add(TypeLostSamples, 0, b.u64(9))
	add(TypeSwitch, MiscSwitchOut|MiscSwitchOutPreempt)
	add(TypeSwitchCPUWide, 0, b.u32(1, 2))
	add(TypeNamespaces, 0, b.u32(10, 11), b.u64(2, 3, 4, 5, 6))
	add(TypeKsymbol, 0, b.u64(0xffffffffc0000000), b.u32(64), b.order.AppendUint16(b.order.AppendUint16(nil, 1), 1), pad8("bpf_prog_1"))
	add(TypeBPFEvent, 0, b.order.AppendUint16(b.order.AppendUint16(nil, 1), 0), b.u32(77), []byte("tagtagta"))
	add(TypeCgroup, 0, b.u64(123), pad8("/user.slice"))
	add(TypeTextPoke, 0, b.u64(0xffffffff81000000), b.order.AppendUint16(b.order.AppendUint16(nil, 2), 3), []byte("ab"), []byte("cde"), make([]byte, 7))
	add(TypeAuxOutputHWID, 0, b.u64(31))
	add(TypeCallchainDeferred, MiscUser, b.u64(0xc00c1e, 2, 0x401000, 0x402000))
	return out
}

// Two events of different layouts for small streams of samples.
var simpleEvents = []builtEvent{
	{Attr{Type: TypeSoftware, Config: SWCPUClock, SamplePeriod: 1000, SampleType: FieldIdentifier | FieldIP | FieldTID | FieldTime | FieldCallchain, Flags: FlagSampleIDAll}, []uint64{1, 2}},
	{Attr{Type: TypeSoftware, Config: SWPageFaults, SamplePeriod: 1, SampleType: FieldIdentifier | FieldIP | FieldTID | FieldTime | FieldAddr, Flags: FlagSampleIDAll}, []uint64{3}},
}

// simpleSample is a sample of the first simple event.
func (b *builder) simpleSample(id, ip, time uint64, chain ...uint64) []byte {
	return b.record(TypeSample, MiscUser, b.u64(id, ip), b.pair(1, 1), b.u64(time, uint64(len(chain))), b.u64(chain...))
}
