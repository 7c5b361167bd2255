package perfdata

import "math"

// linkEvents gives events what other parts of the recording say about them:
// names and ids from EVENT_DESC, groups from GROUP_DESC or the attrs. It can
// be called again when more is known.
func (m *Meta) linkEvents(declare func(id uint64, index int)) {
	for i, ev := range m.Events {
		if i < len(m.descs) {
			d := &m.descs[i]
			if d.name != "" {
				ev.Name, ev.madeName = d.name, false
			}
			// perf inject and old perfs may leave the ids out of the
			// attr section and still describe them here.
			if len(ev.IDs) == 0 && d.attr.Type == ev.Type && d.attr.Config == ev.Config {
				ev.IDs = d.ids
				for _, id := range d.ids {
					declare(id, i)
				}
			}
		}
		if ev.Name == "" || ev.madeName {
			ev.Name, ev.madeName = m.makeName(ev), true
		}
	}
	m.linkGroups()
}

// makeName names an event by the tracing data, simpleperf's list, or its attr.
func (m *Meta) makeName(ev *Event) string {
	if ev.Type == TypeTracepoint {
		if name := m.tracepoints[ev.Config]; name != "" {
			return name
		}
	}
	if name := m.simpleperf[[2]uint64{uint64(ev.Type), ev.Config}]; name != "" {
		return name
	}
	return attrName(&ev.Attr, m.PMUMappings)
}

// linkGroups sets Leader and Group of every event.
//
// Without GROUP_DESC (pipe mode of old perfs, other recorders) groups are
// inferred from what evsel__config (tools/perf/util/evsel.c) does to the
// members of a group whose counters are read together: all have
// PERF_FORMAT_GROUP, and the members that follow the leader never sample
// themselves (sample_period 0) and are not disabled on their own. Attrs are
// written in evlist order, so a group is a leader and what follows it.
func (m *Meta) linkGroups() {
	for _, ev := range m.Events {
		ev.Leader, ev.Group = ev, nil
	}
	if len(m.Groups) > 0 {
		for _, g := range m.Groups {
			m.group(uint64(g.LeaderIndex), uint64(g.NrMembers))
		}
	} else {
		for i := 0; i < len(m.Events); {
			n := 1
			if m.Events[i].ReadFormat&ReadGroup != 0 {
				for i+n < len(m.Events) && follower(m.Events[i+n]) {
					n++
				}
			}
			m.group(uint64(i), uint64(n))
			i += n
		}
	}
	for _, ev := range m.Events {
		if ev.Leader == ev && ev.Group == nil {
			ev.Group = []*Event{ev}
		}
	}
}

func follower(ev *Event) bool {
	return ev.ReadFormat&ReadGroup != 0 && ev.SamplePeriod == 0 && ev.Flags&FlagDisabled == 0
}

func (m *Meta) group(leader, n uint64) {
	if leader >= uint64(len(m.Events)) || n > uint64(len(m.Events))-leader {
		return
	}
	l := m.Events[leader]
	l.Group = m.Events[leader : leader+n : leader+n]
	for _, ev := range l.Group {
		ev.Leader = l
	}
}

// Kinds of EVENT_UPDATE (tools/lib/perf/include/perf/event.h).
const (
	updateUnit  = 0
	updateScale = 1
	updateName  = 2
	updateCPUs  = 3
)

// updateEvent applies a PERF_RECORD_EVENT_UPDATE.
func (m *Meta) updateEvent(raw []byte, big bool, find func(id uint64) *Event) bool {
	c := &cursor{b: raw[headerSize:], big: big}
	kind, id := c.u64(), c.u64()
	if c.bad {
		return false
	}
	ev := find(id)
	if ev == nil {
		return false
	}
	switch kind {
	case updateUnit:
		ev.Unit = cstring(c.b)
	case updateScale:
		f := math.Float64frombits(c.u64())
		if c.bad || math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
		ev.Scale = f
	case updateName:
		if name := cstring(c.b); name != "" {
			ev.Name, ev.madeName = name, false
		}
	case updateCPUs:
		ev.CPUs = decodeCPUMap(c)
		return !c.bad
	}
	return true
}

// Kinds of perf_record_cpu_map_data.
const (
	cpuMapList  = 0
	cpuMapMask  = 1
	cpuMapRange = 2
)

// maxCPUs bounds what a range may unfold to (perf's own MAX_NR_CPUS).
const maxCPUs = 4096

// decodeCPUMap reads perf_record_cpu_map_data.
func decodeCPUMap(c *cursor) []int32 {
	var out []int32
	switch c.u16() {
	case cpuMapList:
		n := c.u16()
		for range n {
			v := int16(c.u16())
			if c.bad {
				return nil
			}
			out = append(out, int32(v))
		}
	case cpuMapMask:
		n, size := int(c.u16()), int(c.u16())
		if size == 8 {
			c.u32() // padding in front of 64-bit words
		} else if size != 4 {
			c.fail()
		}
		for w := range n {
			v := uint64(0)
			if size == 8 {
				v = c.u64()
			} else {
				v = uint64(c.u32())
			}
			if c.bad {
				return nil
			}
			for bit := range size * 8 {
				if v>>bit&1 != 0 {
					out = append(out, int32(w*size*8+bit))
				}
			}
		}
	case cpuMapRange:
		c.u8() // any_cpu
		c.u8()
		from, to := c.u16(), c.u16()
		for cpu := int32(from); !c.bad && cpu <= int32(to) && cpu < maxCPUs; cpu++ {
			out = append(out, cpu)
		}
	}
	return out
}
