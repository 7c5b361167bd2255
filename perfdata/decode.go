package perfdata

import "slices"

// A decoder turns raw records into structs.
type decoder struct {
	big    bool
	table  *eventTable
	sample Sample // reused
	other  Other  // reused
}

// verdict on a raw record.
type verdict uint8

const (
	decoded verdict = iota
	malformed
	unknownID
)

// decode returns the record raw holds. Its type is below 64 or not one that
// applies to Meta.
func (d *decoder) decode(h rawHeader, raw []byte, offset int64) (Record, verdict) {
	if h.typ >= TypeHeaderAttr || h.typ == 0 || h.typ > TypeCallchainDeferred {
		d.other = Other{Common: Common{Type: h.typ, Misc: h.misc, Offset: offset}, Data: raw[headerSize:]}
		return &d.other, decoded
	}
	e, known := d.table.find(raw, h.typ)
	if h.typ == TypeSample {
		if e == nil || !known {
			return nil, unknownID
		}
		if !d.decodeSample(e.ev, h, raw, offset) {
			return nil, malformed
		}
		return &d.sample, decoded
	}
	com := Common{Type: h.typ, Misc: h.misc, Offset: offset}
	body := raw[headerSize:]
	if e != nil {
		if known {
			com.Event = e.ev
		}
		if e.tailSize <= len(body) {
			d.sampleID(&com, e, body[len(body)-e.tailSize:])
			body = body[:len(body)-e.tailSize]
		}
	}
	c := &cursor{b: body, big: d.big}
	rec := d.body(&com, e, c)
	if c.bad {
		return nil, malformed
	}
	return rec, decoded
}

// sampleID reads the fields that FlagSampleIDAll appends, in the order of
// __perf_event__output_id_sample.
func (d *decoder) sampleID(com *Common, e *tableEntry, b []byte) {
	if len(b) == 0 {
		return
	}
	c := cursor{b: b, big: d.big}
	st := e.ev.SampleType
	com.Has = st & (FieldTID | FieldTime | FieldID | FieldStreamID | FieldCPU | FieldIdentifier)
	if st&FieldTID != 0 {
		com.PID, com.TID = c.i32(), c.i32()
	}
	if st&FieldTime != 0 {
		com.Time = c.u64()
	}
	if st&FieldID != 0 {
		com.ID = c.u64()
	}
	if st&FieldStreamID != 0 {
		com.StreamID = c.u64()
	}
	if st&FieldCPU != 0 {
		com.CPU = c.u32()
		c.u32()
	}
	if st&FieldIdentifier != 0 {
		com.ID = c.u64()
	}
}

// body decodes every kernel record but samples; layouts from the comments of
// enum perf_event_type in include/uapi/linux/perf_event.h.
func (d *decoder) body(com *Common, e *tableEntry, c *cursor) Record {
	switch com.Type {
	case TypeMmap:
		m := &Mmap{Common: *com, MapPID: c.i32(), MapTID: c.i32(), Addr: c.u64(), Len: c.u64(), Pgoff: c.u64()}
		m.Filename = cstring(c.b)
		return m
	case TypeMmap2:
		return mmap2(com, c)
	case TypeComm:
		m := &Comm{Common: *com, CommPID: c.i32(), CommTID: c.i32()}
		m.Comm = cstring(c.b)
		return m
	case TypeFork, TypeExit:
		return &Task{Common: *com, TaskPID: c.i32(), TaskPPID: c.i32(), TaskTID: c.i32(), TaskPTID: c.i32(), TaskTime: c.u64()}
	case TypeLost:
		return &Lost{Common: *com, LostID: c.u64(), Count: c.u64()}
	case TypeLostSamples:
		return &LostSamples{Common: *com, Count: c.u64()}
	case TypeThrottle, TypeUnthrottle:
		return &Throttle{Common: *com, ThrottleTime: c.u64(), ThrottleID: c.u64(), Stream: c.u64()}
	case TypeSwitch:
		return &Switch{Common: *com, NextPrevPID: -1, NextPrevTID: -1}
	case TypeSwitchCPUWide:
		return &Switch{Common: *com, NextPrevPID: c.i32(), NextPrevTID: c.i32()}
	case TypeRead:
		m := &Read{Common: *com, ReadPID: c.i32(), ReadTID: c.i32()}
		if e != nil {
			m.Counters = c.counters(nil, e.ev.ReadFormat, &m.TimeEnabled, &m.TimeRunning)
		}
		return m
	case TypeAux:
		return &Aux{Common: *com, AuxOffset: c.u64(), AuxSize: c.u64(), AuxFlags: c.u64()}
	case TypeItraceStart:
		return &ItraceStart{Common: *com, TracePID: c.i32(), TraceTID: c.i32()}
	case TypeAuxOutputHWID:
		return &AuxOutputHWID{Common: *com, HWID: c.u64()}
	}
	return rareBody(com, c)
}

func rareBody(com *Common, c *cursor) Record {
	switch com.Type {
	case TypeKsymbol:
		m := &Ksymbol{Common: *com, Addr: c.u64(), Len: c.u32(), KsymType: c.u16()}
		m.Unregister = c.u16()&1 != 0 // PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER
		m.Name = cstring(c.b)
		return m
	case TypeBPFEvent:
		m := &BPFEvent{Common: *com, EventType: c.u16(), BPFFlags: c.u16(), ProgID: c.u32()}
		copy(m.Tag[:], c.take(8))
		return m
	case TypeNamespaces:
		m := &Namespaces{Common: *com, NSPID: c.i32(), NSTID: c.i32()}
		n := c.u64()
		if n > uint64(len(c.b))/16 {
			c.fail()
			return m
		}
		for range n {
			m.Links = append(m.Links, NamespaceLink{c.u64(), c.u64()})
		}
		return m
	case TypeCgroup:
		m := &Cgroup{Common: *com, CgroupID: c.u64()}
		m.Path = cstring(c.b)
		return m
	case TypeTextPoke:
		m := &TextPoke{Common: *com, Addr: c.u64()}
		oldLen, newLen := c.u16(), c.u16()
		m.Old, m.New = slices.Clone(c.take(uint64(oldLen))), slices.Clone(c.take(uint64(newLen)))
		return m
	case TypeCallchainDeferred:
		m := &CallchainDeferred{Common: *com, Cookie: c.u64()}
		m.Callchain = c.words(nil, c.u64())
		return m
	}
	return nil // unreachable: decode passes no other type
}

func mmap2(com *Common, c *cursor) Record {
	m := &Mmap{Common: *com, MapPID: c.i32(), MapTID: c.i32(), Addr: c.u64(), Len: c.u64(), Pgoff: c.u64()}
	if com.Misc&MiscMmapBuildID != 0 {
		n := min(uint64(c.u8()), maxBuildID)
		c.u8()
		c.u16()
		m.BuildID = slices.Clone(c.take(maxBuildID))
		if !c.bad {
			m.BuildID = m.BuildID[:n]
		}
	} else {
		m.Maj, m.Min, m.Ino, m.InoGen = c.u32(), c.u32(), c.u64(), c.u64()
	}
	m.Prot, m.MapFlags = c.u32(), c.u32()
	m.Filename = cstring(c.b)
	return m
}

// counters reads a read_format (perf_output_read, kernel/events/core.c).
func (c *cursor) counters(dst []Counter, rf ReadFormat, enabled, running *uint64) []Counter {
	if rf&ReadGroup == 0 {
		var v Counter
		v.Value = c.u64()
		c.times(rf, enabled, running)
		c.idLost(rf, &v)
		return append(dst, v)
	}
	n := c.u64()
	c.times(rf, enabled, running)
	if n > uint64(len(c.b))/8 {
		c.fail()
		return dst
	}
	for range n {
		v := Counter{Value: c.u64()}
		c.idLost(rf, &v)
		dst = append(dst, v)
	}
	return dst
}

func (c *cursor) times(rf ReadFormat, enabled, running *uint64) {
	if rf&ReadTotalTimeEnabled != 0 {
		*enabled = c.u64()
	}
	if rf&ReadTotalTimeRunning != 0 {
		*running = c.u64()
	}
}

func (c *cursor) idLost(rf ReadFormat, v *Counter) {
	if rf&ReadID != 0 {
		v.ID = c.u64()
	}
	if rf&ReadLost != 0 {
		v.Lost = c.u64()
	}
}

// decodeHeaderAttr reads a HEADER_ATTR record: an attr of its own size, then ids.
func decodeHeaderAttr(raw []byte, big bool) (Attr, []uint64, bool) {
	a, ok := decodeAttr(raw[headerSize:], big)
	if !ok || uint64(a.Size) > uint64(len(raw)-headerSize) {
		return Attr{}, nil, false
	}
	c := cursor{b: raw[headerSize+a.Size:], big: big}
	return a, c.words(nil, uint64(len(c.b))/8), true
}
