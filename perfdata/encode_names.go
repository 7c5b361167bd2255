package perfdata

import "fmt"

// recordName is the name of a record type as the uapi header and perf spell
// it, without the prefix PERF_RECORD_.
func recordName(t RecordType) string {
	if n, ok := recordNames[t]; ok {
		return n
	}
	return fmt.Sprintf("record of type %d", t)
}

var recordNames = map[RecordType]string{
	TypeMmap:              "MMAP",
	TypeLost:              "LOST",
	TypeComm:              "COMM",
	TypeExit:              "EXIT",
	TypeThrottle:          "THROTTLE",
	TypeUnthrottle:        "UNTHROTTLE",
	TypeFork:              "FORK",
	TypeRead:              "READ",
	TypeSample:            "SAMPLE",
	TypeMmap2:             "MMAP2",
	TypeAux:               "AUX",
	TypeItraceStart:       "ITRACE_START",
	TypeLostSamples:       "LOST_SAMPLES",
	TypeSwitch:            "SWITCH",
	TypeSwitchCPUWide:     "SWITCH_CPU_WIDE",
	TypeNamespaces:        "NAMESPACES",
	TypeKsymbol:           "KSYMBOL",
	TypeBPFEvent:          "BPF_EVENT",
	TypeCgroup:            "CGROUP",
	TypeTextPoke:          "TEXT_POKE",
	TypeAuxOutputHWID:     "AUX_OUTPUT_HW_ID",
	TypeCallchainDeferred: "CALLCHAIN_DEFERRED",
	TypeHeaderAttr:        "HEADER_ATTR",
	TypeHeaderFeature:     "HEADER_FEATURE",
	TypeHeaderBuildID:     "HEADER_BUILD_ID",
	TypeHeaderTracingData: "HEADER_TRACING_DATA",
	TypeEventUpdate:       "EVENT_UPDATE",
	TypeCompressed:        "COMPRESSED",
}
