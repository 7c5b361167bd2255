package perfdata

// RecordType is perf_event_header.type.
type RecordType uint32

// Records of the kernel (enum perf_event_type).
const (
	TypeMmap              RecordType = 1
	TypeLost              RecordType = 2
	TypeComm              RecordType = 3
	TypeExit              RecordType = 4
	TypeThrottle          RecordType = 5
	TypeUnthrottle        RecordType = 6
	TypeFork              RecordType = 7
	TypeRead              RecordType = 8
	TypeSample            RecordType = 9
	TypeMmap2             RecordType = 10
	TypeAux               RecordType = 11
	TypeItraceStart       RecordType = 12
	TypeLostSamples       RecordType = 13
	TypeSwitch            RecordType = 14
	TypeSwitchCPUWide     RecordType = 15
	TypeNamespaces        RecordType = 16
	TypeKsymbol           RecordType = 17
	TypeBPFEvent          RecordType = 18
	TypeCgroup            RecordType = 19
	TypeTextPoke          RecordType = 20
	TypeAuxOutputHWID     RecordType = 21
	TypeCallchainDeferred RecordType = 22
)

// Records of perf itself (enum perf_user_event_type).
const (
	TypeHeaderAttr        RecordType = 64
	TypeHeaderEventType   RecordType = 65
	TypeHeaderTracingData RecordType = 66
	TypeHeaderBuildID     RecordType = 67
	TypeFinishedRound     RecordType = 68
	TypeIDIndex           RecordType = 69
	TypeAuxtraceInfo      RecordType = 70
	TypeAuxtrace          RecordType = 71
	TypeAuxtraceError     RecordType = 72
	TypeThreadMap         RecordType = 73
	TypeCPUMap            RecordType = 74
	TypeStatConfig        RecordType = 75
	TypeStat              RecordType = 76
	TypeStatRound         RecordType = 77
	TypeEventUpdate       RecordType = 78
	TypeTimeConv          RecordType = 79
	TypeHeaderFeature     RecordType = 80
	TypeCompressed        RecordType = 81
	TypeFinishedInit      RecordType = 82
	TypeCompressed2       RecordType = 83
	TypeBPFMetadata       RecordType = 84
	TypeSchedstatCPU      RecordType = 85
	TypeSchedstatDomain   RecordType = 86
	TypeMax               RecordType = 87 // the first type unknown here
)

// Misc is perf_event_header.misc. The meaning of the upper bits depends on
// the record type.
type Misc uint16

const (
	MiscCPUModeMask Misc = 7
	MiscKernel      Misc = 1
	MiscUser        Misc = 2
	MiscHypervisor  Misc = 3
	MiscGuestKernel Misc = 4
	MiscGuestUser   Misc = 5

	MiscProcMapParseTimeout Misc = 1 << 12
	MiscMmapData            Misc = 1 << 13 // MMAP: a non-executable mapping
	MiscCommExec            Misc = 1 << 13 // COMM: by exec
	MiscForkExec            Misc = 1 << 13 // FORK: synthesised by perf from /proc
	MiscSwitchOut           Misc = 1 << 13 // SWITCH: the thread leaves the CPU
	MiscExactIP             Misc = 1 << 14 // SAMPLE: ip has no skid
	MiscSwitchOutPreempt    Misc = 1 << 14 // SWITCH: it was still runnable
	MiscMmapBuildID         Misc = 1 << 14 // MMAP2: build ID instead of inode
)

// Common is what every record has: its header, and the sample_id fields the
// kernel appends to records if FlagSampleIDAll is set. Has says which of the
// fields from PID on were recorded; the others are zero.
type Common struct {
	Type   RecordType
	Misc   Misc
	Offset int64  // where the record starts, in the file or the decompressed stream
	Event  *Event // nil if the record names no known event

	Has      SampleFormat
	PID, TID int32
	Time     uint64 // ns of the recording's clock
	ID       uint64 // of the event instance (PERF_SAMPLE_ID or IDENTIFIER)
	StreamID uint64
	CPU      uint32
}

// Record is one of the pointer types of this package: *Mmap, *Comm, *Sample...
// A record other than *Sample may be kept; a *Sample and what it points to is
// valid only until the next one is read (Sample.Clone makes a copy).
type Record interface{ Header() *Common }

// Header returns the part all records share.
func (c *Common) Header() *Common { return c }

// Mmap is PERF_RECORD_MMAP or MMAP2: [Addr, Addr+Len) of process PID now shows
// the file from Pgoff on. With Misc&MiscMmapBuildID, BuildID replaces device
// and inode. Misc&MiscMmapData marks a mapping without PROT_EXEC.
type Mmap struct {
	Common
	MapPID, MapTID int32
	Addr, Len      uint64
	Pgoff          uint64
	Maj, Min       uint32
	Ino, InoGen    uint64
	BuildID        []byte
	Prot, MapFlags uint32
	Filename       string
}

// Comm is PERF_RECORD_COMM: a thread's name; Misc&MiscCommExec after exec.
type Comm struct {
	Common
	CommPID, CommTID int32
	Comm             string
}

// Task is PERF_RECORD_FORK or PERF_RECORD_EXIT (told apart by Common.Type).
type Task struct {
	Common
	TaskPID, TaskPPID int32
	TaskTID, TaskPTID int32
	TaskTime          uint64
}

// Lost is PERF_RECORD_LOST: the ring buffer was full, Count records are missing.
type Lost struct {
	Common
	LostID uint64
	Count  uint64
}

// LostSamples is PERF_RECORD_LOST_SAMPLES: the hardware dropped Count samples.
type LostSamples struct {
	Common
	Count uint64
}

// Throttle is PERF_RECORD_THROTTLE or UNTHROTTLE: sampling of an event
// instance was stopped because it came too often, or resumed.
type Throttle struct {
	Common
	ThrottleTime       uint64
	ThrottleID, Stream uint64
}

// Switch is PERF_RECORD_SWITCH or SWITCH_CPU_WIDE: the thread of Common (TID)
// comes onto the CPU, or leaves it (MiscSwitchOut, MiscSwitchOutPreempt).
// Next/Prev are recorded by SWITCH_CPU_WIDE only, else -1: the thread that
// follows on a switch out, or preceded on a switch in.
type Switch struct {
	Common
	NextPrevPID, NextPrevTID int32
}

// Ksymbol is PERF_RECORD_KSYMBOL: kernel text (BPF, out of line) came or went.
type Ksymbol struct {
	Common
	Addr       uint64
	Len        uint32
	KsymType   uint16
	Unregister bool
	Name       string
}

// BPFEvent is PERF_RECORD_BPF_EVENT: a BPF program was loaded (1) or unloaded (2).
type BPFEvent struct {
	Common
	EventType uint16
	BPFFlags  uint16
	ProgID    uint32
	Tag       [8]byte
}

// Namespaces is PERF_RECORD_NAMESPACES; Links is indexed net, uts, ipc, pid,
// user, mnt, cgroup.
type Namespaces struct {
	Common
	NSPID, NSTID int32
	Links        []NamespaceLink
}

// NamespaceLink identifies one namespace by device and inode.
type NamespaceLink struct{ Dev, Ino uint64 }

// Cgroup is PERF_RECORD_CGROUP.
type Cgroup struct {
	Common
	CgroupID uint64
	Path     string
}

// TextPoke is PERF_RECORD_TEXT_POKE: kernel code at Addr was changed.
type TextPoke struct {
	Common
	Addr     uint64
	Old, New []byte
}

// Aux is PERF_RECORD_AUX: trace data became available in the AUX area.
type Aux struct {
	Common
	AuxOffset, AuxSize, AuxFlags uint64
}

// ItraceStart is PERF_RECORD_ITRACE_START.
type ItraceStart struct {
	Common
	TracePID, TraceTID int32
}

// AuxOutputHWID is PERF_RECORD_AUX_OUTPUT_HW_ID.
type AuxOutputHWID struct {
	Common
	HWID uint64
}

// Read is PERF_RECORD_READ: counter values when an inherited task exits.
type Read struct {
	Common
	ReadPID, ReadTID         int32
	Counters                 []Counter
	TimeEnabled, TimeRunning uint64
}

// CallchainDeferred is PERF_RECORD_CALLCHAIN_DEFERRED: the user part of the
// callchains that ended in Cookie (context marker PERF_CONTEXT_USER_DEFERRED).
type CallchainDeferred struct {
	Common
	Cookie    uint64
	Callchain []uint64
}

// Counter is one counter value of a read: PERF_SAMPLE_READ or PERF_RECORD_READ.
// ID and Lost are zero where read_format did not ask for them.
type Counter struct {
	ID    uint64
	Value uint64
	Lost  uint64
}

// Branch is one record of a branch stack, perf_branch_entry.
type Branch struct {
	From, To uint64
	Flags    BranchFlags
}

// BranchFlags is the packed flag word of perf_branch_entry, in the bit order
// of little-endian machines.
type BranchFlags uint64

func (f BranchFlags) Mispred() bool   { return f&1 != 0 }
func (f BranchFlags) Predicted() bool { return f&2 != 0 }
func (f BranchFlags) InTX() bool      { return f&4 != 0 }
func (f BranchFlags) Abort() bool     { return f&8 != 0 }

// Cycles since the previous (older) record; 0 if the hardware gave none.
func (f BranchFlags) Cycles() uint16 { return uint16(f >> 4) }

// Kind is the branch type saved with BranchTypeSave (PERF_BR_*), 0 if unknown.
func (f BranchFlags) Kind() BranchKind {
	if k := BranchKind(f >> 20 & 0xf); k != kindExtended {
		return k
	}
	return BranchKind(16 + (f >> 26 & 0xf)) // new_type
}

// Spec is the speculation outcome (PERF_BR_SPEC_*).
func (f BranchFlags) Spec() uint8 { return uint8(f >> 24 & 3) }

// Priv is the privilege level (PERF_BR_PRIV_*), 0 if not saved.
func (f BranchFlags) Priv() uint8 { return uint8(f >> 30 & 7) }

// BranchKind is PERF_BR_*; values of new_type follow from 16 on.
type BranchKind uint8

const (
	KindUnknown      BranchKind = 0
	KindCond         BranchKind = 1
	KindJump         BranchKind = 2
	KindIndirectJump BranchKind = 3
	KindCall         BranchKind = 4
	KindIndirectCall BranchKind = 5
	KindReturn       BranchKind = 6
	KindSyscall      BranchKind = 7
	KindSysret       BranchKind = 8
	KindCondCall     BranchKind = 9
	KindCondReturn   BranchKind = 10
	KindEret         BranchKind = 11
	KindIRQ          BranchKind = 12
	KindSerror       BranchKind = 13
	KindNoTX         BranchKind = 14
	kindExtended     BranchKind = 15
)

// Regs is a register dump. ABI 0 means none was taken; Values holds one word
// for each bit set in Mask, lowest first.
type Regs struct {
	ABI    uint64 // 1: 32 bit, 2: 64 bit
	Mask   uint64
	Values []uint64
}

// Get returns register reg (a PERF_REG_* number of the architecture).
func (r *Regs) Get(reg int) (uint64, bool) {
	if r.Mask>>reg&1 == 0 {
		return 0, false
	}
	i := 0
	for m := r.Mask & (1<<reg - 1); m != 0; m &= m - 1 {
		i++
	}
	if i >= len(r.Values) {
		return 0, false
	}
	return r.Values[i], true
}

// Sample is PERF_RECORD_SAMPLE. Which fields mean something is said by
// Common.Has, the sample_type of its event. It and its slices are reused for
// the next sample.
type Sample struct {
	Common
	IP, Addr uint64
	Period   uint64 // Attr.SamplePeriod if the sample has none and the event a fixed one

	Counters                 []Counter // PERF_SAMPLE_READ, leader first
	TimeEnabled, TimeRunning uint64    // ns, 0 where read_format lacks them

	Callchain []uint64 // leaf first, with PERF_CONTEXT_* markers

	Raw []byte

	Branches       []Branch // newest first
	BranchHWIndex  uint64   // ^0 if unknown
	BranchCounters []uint64

	RegsUser     Regs
	StackUser    []byte // as many bytes as were really dumped, from sp up
	StackUserMax uint64 // bytes the dump had room for
	RegsIntr     Regs

	Weight       uint64 // full word, or the three parts of WEIGHT_STRUCT packed as recorded
	DataSrc      uint64
	Transaction  uint64
	PhysAddr     uint64
	Cgroup       uint64
	DataPageSize uint64
	CodePageSize uint64
	Aux          []byte
}

// Context markers in callchains (enum perf_callchain_context): what follows
// was collected in that mode. Values from ContextMax on are markers, never
// addresses.
const (
	ContextHV           = ^uint64(32) + 1
	ContextKernel       = ^uint64(128) + 1
	ContextUser         = ^uint64(512) + 1
	ContextUserDeferred = ^uint64(640) + 1
	ContextGuest        = ^uint64(2048) + 1
	ContextGuestKernel  = ^uint64(2176) + 1
	ContextGuestUser    = ^uint64(2560) + 1
	ContextMax          = ^uint64(4095) + 1
)

// Other is a record of perf itself whose content the pipeline does not need
// (STAT, THREAD_MAP, AUXTRACE_INFO...), or one of an unknown type. Data is
// its body without header, valid until the next record.
type Other struct {
	Common
	Data []byte
}
