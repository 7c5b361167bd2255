package perfdata

import "encoding/binary"

// Meta is what a recording says about itself: the attrs, and the feature
// sections of perf's header (tools/perf/util/header.h, HEADER_*). Fields that
// were not recorded are zero.
type Meta struct {
	Path      string
	Pipe      bool // pipe mode: no header sections, everything comes as records
	ByteOrder binary.ByteOrder
	Events    []*Event

	BuildIDs       []BuildID
	Hostname       string
	OSRelease      string
	Version        string // of perf
	Arch           string // uname -m
	CPUsAvailable  uint32
	CPUsOnline     uint32
	CPUDesc        string
	CPUID          string
	TotalMemKiB    uint64
	Cmdline        []string
	PMUMappings    map[EventType]string
	Groups         []GroupDesc
	SampleTime     TimeRange
	ClockID        uint64 // resolution in ns of the clock chosen with -k, 0 if none
	ClockData      *ClockData
	HybridTopology []HybridPMU
	PMUCaps        []PMUCaps
	Compressed     *Compressed
	DirFormat      uint64      // version of the directory layout, 0 for a single file
	TracingData    []byte      // of the tracepoints, as perf stores it
	Features       []FeatureID // all that are present, known or not

	// IDs says on which CPU and thread an event instance was opened, from
	// ID_INDEX records: filled as they are met.
	IDs map[uint64]Instance

	// Sources of event names beside EVENT_UPDATE.
	descs       []eventDesc
	tracepoints map[uint64]string
	simpleperf  map[[2]uint64]string // by type and config
}

// Instance is where the kernel opened one id of an event. CPU and TID are -1
// for all.
type Instance struct{ CPU, TID int32 }

// FeatureID is a bit number of the header's feature bitmap (HEADER_*).
type FeatureID uint32

// BuildID is one entry of the BUILD_ID feature: the file named Filename, as
// mapped by process PID (-1: any), had this build ID.
type BuildID struct {
	PID      int32
	Misc     Misc
	ID       []byte // without the zero padding older perfs add
	Filename string
}

// GroupDesc is one group: LeaderIndex and the following members, NrMembers in all.
type GroupDesc struct {
	Name        string
	LeaderIndex uint32
	NrMembers   uint32
}

// TimeRange is the time of the first and the last sample, ns.
type TimeRange struct{ First, Last uint64 }

// ClockData ties the recording's clock to wall-clock time.
type ClockData struct {
	ClockID       uint32
	WallClockNS   uint64
	ClockIDTimeNS uint64
}

// HybridPMU is one core type of a hybrid CPU and its CPU list ("0-15").
type HybridPMU struct{ PMU, CPUs string }

// PMUCaps are the capabilities of a PMU ("branches" -> "32").
type PMUCaps struct {
	PMU  string
	Caps map[string]string
}

// Compressed says how COMPRESSED records were made.
type Compressed struct {
	Version, Type, Level, Ratio uint32
	MmapLen                     uint32
}
