package perfdata

import (
	"maps"
	"slices"
)

// feature is one feature section, or the body of a HEADER_FEATURE record.
type feature struct {
	id   FeatureID
	data []byte
}

// features encodes everything Meta knows, in bit order. The layouts are those
// of the write_* functions of tools/perf/util/header.c.
func (w *Writer) features() []feature {
	m := w.meta
	var fs []feature
	add := func(id FeatureID, b []byte) { fs = append(fs, feature{id, b}) }
	text := func(id FeatureID, s string) {
		if s != "" {
			add(id, appendFeatureString(nil, s))
		}
	}
	if len(m.TracingData) > 0 {
		add(FeatureTracingData, m.TracingData)
	}
	if len(m.BuildIDs) > 0 {
		var b []byte
		for i := range m.BuildIDs {
			b = appendBuildID(b, &m.BuildIDs[i], 0)
		}
		add(FeatureBuildID, b)
	}
	text(FeatureHostname, m.Hostname)
	text(FeatureOSRelease, m.OSRelease)
	text(FeatureVersion, m.Version)
	text(FeatureArch, m.Arch)
	if m.CPUsAvailable != 0 || m.CPUsOnline != 0 {
		add(FeatureNrCPUs, le.AppendUint32(le.AppendUint32(nil, m.CPUsAvailable), m.CPUsOnline))
	}
	text(FeatureCPUDesc, m.CPUDesc)
	text(FeatureCPUID, m.CPUID)
	if m.TotalMemKiB != 0 {
		add(FeatureTotalMem, le.AppendUint64(nil, m.TotalMemKiB))
	}
	if len(m.Cmdline) > 0 {
		add(FeatureCmdline, appendStrings(nil, m.Cmdline))
	}
	add(FeatureEventDesc, encodeEventDesc(m.Events))
	if slices.ContainsFunc(m.Events, func(ev *Event) bool { return ev.SampleType&FieldBranchStack != 0 }) {
		add(FeatureBranchStack, nil) // only its bit means something: perf report then sorts by branch
	}
	if len(m.PMUMappings) > 0 {
		add(FeaturePMUMappings, encodePMUMappings(m.PMUMappings))
	}
	if g := m.groupDescs(); len(g) > 0 {
		add(FeatureGroupDesc, encodeGroups(g))
	}
	if t, ok := w.sampleTime(); ok {
		add(FeatureSampleTime, le.AppendUint64(le.AppendUint64(nil, t.First), t.Last))
	}
	if m.ClockID != 0 {
		add(FeatureClockID, le.AppendUint64(nil, m.ClockID))
	}
	if w.zstd != nil {
		add(FeatureCompressed, w.zstd.describe())
	}
	return append(fs, platformFeatures(m)...)
}

// platformFeatures are the features from CPU_PMU_CAPS on.
func platformFeatures(m *Meta) []feature {
	var fs []feature
	cpu := slices.IndexFunc(m.PMUCaps, isCPUPMU)
	if cpu >= 0 {
		fs = append(fs, feature{FeatureCPUPMUCaps, appendCaps(nil, m.PMUCaps[cpu].Caps)})
	}
	if c := m.ClockData; c != nil {
		b := le.AppendUint32(nil, 1) // version
		b = le.AppendUint32(b, c.ClockID)
		b = le.AppendUint64(b, c.WallClockNS)
		fs = append(fs, feature{FeatureClockData, le.AppendUint64(b, c.ClockIDTimeNS)})
	}
	if len(m.HybridTopology) > 0 {
		b := le.AppendUint32(nil, uint32(len(m.HybridTopology)))
		for _, h := range m.HybridTopology {
			b = appendFeatureString(b, h.PMU)
			b = appendFeatureString(b, h.CPUs)
		}
		fs = append(fs, feature{FeatureHybridTopology, b})
	}
	others := slices.DeleteFunc(slices.Clone(m.PMUCaps), isCPUPMU)
	if len(others) > 0 {
		b := le.AppendUint32(nil, uint32(len(others)))
		for _, p := range others {
			b = appendFeatureString(appendCaps(b, p.Caps), p.PMU)
		}
		fs = append(fs, feature{FeaturePMUCaps, b})
	}
	return fs
}

// isCPUPMU: the capabilities of the PMU "cpu" have a feature of their own,
// without its name.
func isCPUPMU(p PMUCaps) bool { return p.PMU == "cpu" || p.PMU == "" }

// sampleTime is Meta's, else that of the samples written.
func (w *Writer) sampleTime() (TimeRange, bool) {
	if t := w.meta.SampleTime; t != (TimeRange{}) {
		return t, true
	}
	return w.times, w.seen
}

// encodeEventDesc: names and ids of the events, with their attrs once more.
func encodeEventDesc(events []*Event) []byte {
	attrSize := commonAttrSize(events)
	b := le.AppendUint32(nil, uint32(len(events)))
	b = le.AppendUint32(b, uint32(attrSize))
	for _, ev := range events {
		b = append(b, encodeAttr(&ev.Attr).bytes(attrSize)...)
		b = le.AppendUint32(b, uint32(len(ev.IDs)))
		b = appendFeatureString(b, ev.Name)
		b = appendWords(b, ev.IDs)
	}
	return b
}

func encodePMUMappings(m map[EventType]string) []byte {
	b := le.AppendUint32(nil, uint32(len(m)))
	for _, t := range slices.Sorted(maps.Keys(m)) {
		b = le.AppendUint32(b, uint32(t))
		b = appendFeatureString(b, m[t])
	}
	return b
}

// groupDescs are Meta.Groups, else the groups of the events themselves.
func (m *Meta) groupDescs() []GroupDesc {
	if len(m.Groups) > 0 {
		return m.Groups
	}
	var out []GroupDesc
	for i, ev := range m.Events {
		if len(ev.Group) > 1 && ev.Group[0] == ev {
			out = append(out, GroupDesc{LeaderIndex: uint32(i), NrMembers: uint32(len(ev.Group))})
		}
	}
	return out
}

func encodeGroups(groups []GroupDesc) []byte {
	b := le.AppendUint32(nil, uint32(len(groups)))
	for _, g := range groups {
		b = appendFeatureString(b, g.Name)
		b = le.AppendUint32(b, g.LeaderIndex)
		b = le.AppendUint32(b, g.NrMembers)
	}
	return b
}

func appendCaps(b []byte, caps map[string]string) []byte {
	b = le.AppendUint32(b, uint32(len(caps)))
	for _, name := range slices.Sorted(maps.Keys(caps)) {
		b = appendFeatureString(b, name)
		b = appendFeatureString(b, caps[name])
	}
	return b
}

func appendStrings(b []byte, list []string) []byte {
	b = le.AppendUint32(b, uint32(len(list)))
	for _, s := range list {
		b = appendFeatureString(b, s)
	}
	return b
}

// appendFeatureString appends a string as do_write_string of header.c does:
// its length as stored, then the string with zeros up to a multiple of 64
// (NAME_ALIGN).
func appendFeatureString(b []byte, s string) []byte {
	stored := (len(s) + 1 + 63) &^ 63
	b = le.AppendUint32(b, uint32(stored))
	b = append(b, s...)
	return appendZeros(b, stored-len(s))
}

// appendBuildID appends struct perf_record_header_build_id. In the feature
// section its header has type 0, in a pipe HEADER_BUILD_ID.
func appendBuildID(b []byte, id *BuildID, typ RecordType) []byte {
	misc := id.Misc | miscBuildIDSize
	if misc&MiscCPUModeMask == 0 {
		misc |= MiscUser // perf ignores entries of no mode
	}
	n := min(len(id.ID), maxBuildID)
	name := (len(id.Filename) + 1 + 63) &^ 63
	b = le.AppendUint64(b, uint64(typ)|uint64(misc)<<32|uint64(recordHeaderSize+4+24+name)<<48)
	b = le.AppendUint32(b, uint32(id.PID))
	b = append(b, id.ID[:n]...)
	b = appendZeros(b, maxBuildID-n)
	b = append(b, byte(n), 0, 0, 0)
	b = append(b, id.Filename...)
	return appendZeros(b, name-len(id.Filename))
}
