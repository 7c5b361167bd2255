package perfdata

import (
	"fmt"
	"slices"
)

// Feature sections, HEADER_* of tools/perf/util/header.h.
const (
	FeatureTracingData    FeatureID = 1
	FeatureBuildID        FeatureID = 2
	FeatureHostname       FeatureID = 3
	FeatureOSRelease      FeatureID = 4
	FeatureVersion        FeatureID = 5
	FeatureArch           FeatureID = 6
	FeatureNrCPUs         FeatureID = 7
	FeatureCPUDesc        FeatureID = 8
	FeatureCPUID          FeatureID = 9
	FeatureTotalMem       FeatureID = 10
	FeatureCmdline        FeatureID = 11
	FeatureEventDesc      FeatureID = 12
	FeatureCPUTopology    FeatureID = 13
	FeatureNUMATopology   FeatureID = 14
	FeatureBranchStack    FeatureID = 15
	FeaturePMUMappings    FeatureID = 16
	FeatureGroupDesc      FeatureID = 17
	FeatureAuxtrace       FeatureID = 18
	FeatureStat           FeatureID = 19
	FeatureCache          FeatureID = 20
	FeatureSampleTime     FeatureID = 21
	FeatureMemTopology    FeatureID = 22
	FeatureClockID        FeatureID = 23
	FeatureDirFormat      FeatureID = 24
	FeatureBPFProgInfo    FeatureID = 25
	FeatureBPFBTF         FeatureID = 26
	FeatureCompressed     FeatureID = 27
	FeatureCPUPMUCaps     FeatureID = 28
	FeatureClockData      FeatureID = 29
	FeatureHybridTopology FeatureID = 30
	FeaturePMUCaps        FeatureID = 31

	featureSimpleperfMeta FeatureID = 129 // META_INFO of simpleperf
)

// eventDesc is one entry of the EVENT_DESC feature.
type eventDesc struct {
	attr Attr
	name string
	ids  []uint64
}

// decodeFeature puts a feature section into m. The same bytes stand in the
// sections of a file and in the HEADER_FEATURE records of a pipe. It returns
// false if they contradict themselves; m then keeps what was read before.
// EVENT_DESC and GROUP_DESC take effect through linkEvents.
func (m *Meta) decodeFeature(id FeatureID, b []byte, big bool) bool {
	if !slices.Contains(m.Features, id) {
		m.Features = append(m.Features, id)
	}
	c := &cursor{b: b, big: big}
	switch id {
	case FeatureTracingData:
		m.setTracingData(b)
	case FeatureBuildID:
		return m.decodeBuildIDs(c)
	case FeatureHostname:
		setStr(&m.Hostname, c)
	case FeatureOSRelease:
		setStr(&m.OSRelease, c)
	case FeatureVersion:
		setStr(&m.Version, c)
	case FeatureArch:
		setStr(&m.Arch, c)
	case FeatureCPUDesc:
		setStr(&m.CPUDesc, c)
	case FeatureCPUID:
		setStr(&m.CPUID, c)
	case FeatureNrCPUs:
		if avail, online := c.u32(), c.u32(); !c.bad {
			m.CPUsAvailable, m.CPUsOnline = avail, online
		}
	case FeatureTotalMem:
		setU64(&m.TotalMemKiB, c)
	case FeatureCmdline:
		if s := c.strs(); !c.bad {
			m.Cmdline = s
		}
	case FeatureEventDesc:
		m.descs = decodeEventDesc(c)
	case FeaturePMUMappings:
		m.PMUMappings = decodePMUMappings(c)
	case FeatureGroupDesc:
		m.Groups = decodeGroups(c)
	default:
		m.decodeSmallFeature(id, c)
	}
	return !c.bad
}

func (m *Meta) setTracingData(b []byte) {
	m.TracingData = slices.Clone(b)
	m.tracepoints = tracepointNames(b)
}

func (m *Meta) decodeSmallFeature(id FeatureID, c *cursor) {
	switch id {
	case FeatureSampleTime:
		if first, last := c.u64(), c.u64(); !c.bad {
			m.SampleTime = TimeRange{first, last}
		}
	case FeatureClockID:
		setU64(&m.ClockID, c)
	case FeatureDirFormat:
		setU64(&m.DirFormat, c)
	case FeatureCompressed:
		if v := (Compressed{c.u32(), c.u32(), c.u32(), c.u32(), c.u32()}); !c.bad {
			m.Compressed = &v
		}
	case FeatureClockData:
		c.u32() // version, 1
		if v := (ClockData{c.u32(), c.u64(), c.u64()}); !c.bad {
			m.ClockData = &v
		}
	case featureSimpleperfMeta:
		m.simpleperf = simpleperfNames(c.b)
	case FeatureHybridTopology:
		m.HybridTopology = nil
		for range c.u32() {
			if p := (HybridPMU{c.str(), c.str()}); !c.bad {
				m.HybridTopology = append(m.HybridTopology, p)
				continue
			}
			return
		}
	case FeatureCPUPMUCaps:
		m.setPMUCaps("cpu", decodeCaps(c))
	case FeaturePMUCaps:
		for range c.u32() {
			caps := decodeCaps(c)
			name := c.str()
			if c.bad {
				return
			}
			m.setPMUCaps(name, caps)
		}
	}
}

func setStr(dst *string, c *cursor) {
	if s := c.str(); !c.bad {
		*dst = s
	}
}

func setU64(dst *uint64, c *cursor) {
	if v := c.u64(); !c.bad {
		*dst = v
	}
}

func decodeCaps(c *cursor) map[string]string {
	caps := make(map[string]string)
	for range c.u32() {
		name, value := c.str(), c.str()
		if c.bad {
			break
		}
		caps[name] = value
	}
	return caps
}

func (m *Meta) setPMUCaps(pmu string, caps map[string]string) {
	for i := range m.PMUCaps {
		if m.PMUCaps[i].PMU == pmu {
			m.PMUCaps[i].Caps = caps
			return
		}
	}
	m.PMUCaps = append(m.PMUCaps, PMUCaps{pmu, caps})
}

func decodePMUMappings(c *cursor) map[EventType]string {
	out := make(map[EventType]string)
	for range c.u32() {
		t, name := EventType(c.u32()), c.str()
		if c.bad {
			break
		}
		out[t] = name
	}
	return out
}

func decodeGroups(c *cursor) []GroupDesc {
	var out []GroupDesc
	for range c.u32() {
		g := GroupDesc{c.str(), c.u32(), c.u32()}
		if c.bad {
			break
		}
		out = append(out, g)
	}
	return out
}

// decodeEventDesc follows write_event_desc of tools/perf/util/header.c.
func decodeEventDesc(c *cursor) []eventDesc {
	var out []eventDesc
	n, size := c.u32(), c.u32()
	for range n {
		a, ok := decodeAttr(c.take(uint64(size)), c.big)
		ids := c.u32()
		d := eventDesc{attr: a, name: c.str()}
		d.ids = c.words(nil, uint64(ids))
		if c.bad || !ok {
			c.fail()
			break
		}
		out = append(out, d)
	}
	return out
}

// decodeBuildIDs reads the BUILD_ID section, a series of records
// (perf_record_header_build_id).
func (m *Meta) decodeBuildIDs(c *cursor) bool {
	for len(c.b) > 0 {
		if len(c.b) < headerSize {
			return false
		}
		h := parseHeader(c.b, c.big)
		raw := c.take(uint64(h.size))
		if c.bad || h.size < headerSize {
			return false
		}
		if !m.addBuildID(raw, c.big) {
			return false
		}
	}
	return true
}

const (
	miscBuildIDSize Misc = 1 << 15 // PERF_RECORD_MISC_BUILD_ID_SIZE: the size byte is set
	maxBuildID           = 20
)

// addBuildID adds the entry of one record, of the section or of a pipe.
func (m *Meta) addBuildID(raw []byte, big bool) bool {
	h := parseHeader(raw, big)
	c := &cursor{b: raw[headerSize:], big: big}
	b := BuildID{PID: c.i32(), Misc: h.misc}
	id := c.take(24)
	if c.bad {
		return false
	}
	n := maxBuildID
	if h.misc&miscBuildIDSize != 0 && id[maxBuildID] <= maxBuildID {
		n = int(id[maxBuildID])
	}
	b.ID = trimBuildID(id[:n])
	b.Filename = cstring(c.b)
	m.BuildIDs = append(m.BuildIDs, b)
	return true
}

// trimBuildID copies an id without the zeros that perf pads shorter ones
// with (MD5 ids have 16 bytes).
func trimBuildID(id []byte) []byte {
	for len(id) >= 4 && id[len(id)-1]|id[len(id)-2]|id[len(id)-3]|id[len(id)-4] == 0 {
		id = id[:len(id)-4]
	}
	return slices.Clone(id)
}

func (id FeatureID) String() string {
	if id < FeatureID(len(featureNames)) && featureNames[id] != "" {
		return featureNames[id]
	}
	return fmt.Sprintf("feature %d", uint32(id))
}

var featureNames = []string{
	1: "TRACING_DATA", "BUILD_ID", "HOSTNAME", "OSRELEASE", "VERSION", "ARCH", "NRCPUS", "CPUDESC", "CPUID",
	"TOTAL_MEM", "CMDLINE", "EVENT_DESC", "CPU_TOPOLOGY", "NUMA_TOPOLOGY", "BRANCH_STACK", "PMU_MAPPINGS",
	"GROUP_DESC", "AUXTRACE", "STAT", "CACHE", "SAMPLE_TIME", "MEM_TOPOLOGY", "CLOCKID", "DIR_FORMAT",
	"BPF_PROG_INFO", "BPF_BTF", "COMPRESSED", "CPU_PMU_CAPS", "CLOCK_DATA", "HYBRID_TOPOLOGY", "PMU_CAPS",
}
