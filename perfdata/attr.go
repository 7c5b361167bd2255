package perfdata

// EventType is perf_event_attr.type: which PMU counts. Values from
// EventMax on are dynamic PMUs, named by Meta.PMUMappings.
type EventType uint32

const (
	TypeHardware   EventType = 0
	TypeSoftware   EventType = 1
	TypeTracepoint EventType = 2
	TypeHWCache    EventType = 3
	TypeRaw        EventType = 4
	TypeBreakpoint EventType = 5
)

// Values of Attr.Config for TypeHardware (enum perf_hw_id). Hybrid CPUs keep
// the PMU type in the upper 32 bits (PERF_PMU_TYPE_SHIFT).
const (
	HWCPUCycles          = 0
	HWInstructions       = 1
	HWCacheReferences    = 2
	HWCacheMisses        = 3
	HWBranchInstructions = 4
	HWBranchMisses       = 5
	HWBusCycles          = 6
	HWStalledFrontend    = 7
	HWStalledBackend     = 8
	HWRefCPUCycles       = 9
)

// Values of Attr.Config for TypeSoftware (enum perf_sw_ids).
const (
	SWCPUClock        = 0
	SWTaskClock       = 1
	SWPageFaults      = 2
	SWContextSwitches = 3
	SWCPUMigrations   = 4
	SWPageFaultsMin   = 5
	SWPageFaultsMaj   = 6
	SWAlignmentFaults = 7
	SWEmulationFaults = 8
	SWDummy           = 9
	SWBPFOutput       = 10
	SWCgroupSwitches  = 11
)

// SampleFormat is perf_event_attr.sample_type: the fields a sample carries.
type SampleFormat uint64

const (
	FieldIP SampleFormat = 1 << iota
	FieldTID
	FieldTime
	FieldAddr
	FieldRead
	FieldCallchain
	FieldID
	FieldCPU
	FieldPeriod
	FieldStreamID
	FieldRaw
	FieldBranchStack
	FieldRegsUser
	FieldStackUser
	FieldWeight
	FieldDataSrc
	FieldIdentifier
	FieldTransaction
	FieldRegsIntr
	FieldPhysAddr
	FieldAux
	FieldCgroup
	FieldDataPageSize
	FieldCodePageSize
	FieldWeightStruct
)

// ReadFormat is perf_event_attr.read_format: the layout of counter reads.
type ReadFormat uint64

const (
	ReadTotalTimeEnabled ReadFormat = 1 << iota
	ReadTotalTimeRunning
	ReadID
	ReadGroup
	ReadLost
)

// BranchSample is perf_event_attr.branch_sample_type.
type BranchSample uint64

const (
	BranchUser BranchSample = 1 << iota
	BranchKernel
	BranchHV
	BranchAny
	BranchAnyCall
	BranchAnyReturn
	BranchIndCall
	BranchAbortTX
	BranchInTX
	BranchNoTX
	BranchCond
	BranchCallStack
	BranchIndJump
	BranchCall
	BranchNoFlags
	BranchNoCycles
	BranchTypeSave
	BranchHWIndex
	BranchPrivSave
	BranchCounters
)

// AttrFlags are the single-bit fields of perf_event_attr, in the order of
// the uapi header (bit 0 is disabled).
type AttrFlags uint64

const (
	FlagDisabled AttrFlags = 1 << iota
	FlagInherit
	FlagPinned
	FlagExclusive
	FlagExcludeUser
	FlagExcludeKernel
	FlagExcludeHV
	FlagExcludeIdle
	FlagMmap
	FlagComm
	FlagFreq
	FlagInheritStat
	FlagEnableOnExec
	FlagTask
	FlagWatermark
	flagPreciseIP0 // precise_ip is two bits wide
	flagPreciseIP1
	FlagMmapData
	FlagSampleIDAll
	FlagExcludeHost
	FlagExcludeGuest
	FlagExcludeCallchainKernel
	FlagExcludeCallchainUser
	FlagMmap2
	FlagCommExec
	FlagUseClockID
	FlagContextSwitch
	FlagWriteBackward
	FlagNamespaces
	FlagKsymbol
	FlagBPFEvent
	FlagAuxOutput
	FlagCgroup
	FlagTextPoke
	FlagBuildID
	FlagInheritThread
	FlagRemoveOnExec
	FlagSigtrap
	FlagDeferCallchain
	FlagDeferOutput
)

// Attr is a perf_event_attr (include/uapi/linux/perf_event.h). Fields beyond
// the recorded Size are zero.
type Attr struct {
	Type         EventType
	Size         uint32 // bytes the recording used for the attr, 64 or more
	Config       uint64
	SamplePeriod uint64 // a frequency in Hz if Flags has FlagFreq
	SampleType   SampleFormat
	ReadFormat   ReadFormat
	Flags        AttrFlags

	WakeupEvents     uint32 // or wakeup_watermark, in bytes
	BPType           uint32
	Config1          uint64 // bp_addr, kprobe_func, uprobe_path
	Config2          uint64 // bp_len, kprobe_addr, probe_offset
	BranchSampleType BranchSample
	SampleRegsUser   uint64 // mask of the registers in Sample.RegsUser
	SampleStackUser  uint32 // bytes of user stack asked for
	ClockID          int32
	SampleRegsIntr   uint64
	AuxWatermark     uint32
	SampleMaxStack   uint16
	AuxSampleSize    uint32
	AuxAction        uint32
	SigData          uint64
	Config3          uint64
	Config4          uint64
}

// PreciseIP is the skid constraint, 0 (any skid) to 3 (must have none).
func (a *Attr) PreciseIP() int { return int(a.Flags/flagPreciseIP0) & 3 }

// Freq reports whether SamplePeriod is a frequency.
func (a *Attr) Freq() bool { return a.Flags&FlagFreq != 0 }

// Event is an attr with what perf keeps beside it: a name and the ids the
// kernel gave its instances (one for each CPU or thread it was opened on).
type Event struct {
	Attr
	Index int    // position in Meta.Events
	Name  string // from EVENT_DESC or EVENT_UPDATE, else made from type and config
	IDs   []uint64
	CPUs  []int32 // it was opened on, from EVENT_UPDATE; nil if not said
	Unit  string  // of the counted value, from EVENT_UPDATE
	Scale float64 // factor to Unit; 0 means 1

	// Leader is the event whose group this one belongs to, from GROUP_DESC;
	// an event outside any group, or a leader, is its own leader.
	Leader *Event
	// Group holds the members of the group this event leads, itself first.
	Group []*Event

	madeName bool // Name was made from type and config
}
