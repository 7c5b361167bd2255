package perfdata

// attrSizes are the published sizes of perf_event_attr (PERF_ATTR_SIZE_VER0
// to VER9 in include/uapi/linux/perf_event.h).
var attrSizes = [...]int{64, 72, 80, 96, 104, 112, 120, 128, 136, 144}

// encodedAttr is an attr in its largest layout.
type encodedAttr [144]byte

func encodeAttr(a *Attr) *encodedAttr {
	var e encodedAttr
	le.PutUint32(e[0:], uint32(a.Type))
	le.PutUint64(e[8:], a.Config)
	le.PutUint64(e[16:], a.SamplePeriod)
	le.PutUint64(e[24:], uint64(a.SampleType))
	le.PutUint64(e[32:], uint64(a.ReadFormat))
	le.PutUint64(e[40:], uint64(a.Flags))
	le.PutUint32(e[48:], a.WakeupEvents)
	le.PutUint32(e[52:], a.BPType)
	le.PutUint64(e[56:], a.Config1)
	le.PutUint64(e[64:], a.Config2)
	le.PutUint64(e[72:], uint64(a.BranchSampleType))
	le.PutUint64(e[80:], a.SampleRegsUser)
	le.PutUint32(e[88:], a.SampleStackUser)
	le.PutUint32(e[92:], uint32(a.ClockID))
	le.PutUint64(e[96:], a.SampleRegsIntr)
	le.PutUint32(e[104:], a.AuxWatermark)
	le.PutUint16(e[108:], a.SampleMaxStack)
	le.PutUint32(e[112:], a.AuxSampleSize)
	le.PutUint32(e[116:], a.AuxAction)
	le.PutUint64(e[120:], a.SigData)
	le.PutUint64(e[128:], a.Config3)
	le.PutUint64(e[136:], a.Config4)
	return &e
}

// size is the smallest published size that holds every field that is set.
// Attr.Size, what the recording read or the kernel used, is not kept: a perf
// older than the size refuses the whole file ("incompatible file format" of
// perf 6.1 for 136), while all read a shorter attr as one ending in zeros.
func (e *encodedAttr) size() int {
	used := len(e)
	for used > 0 && e[used-1] == 0 {
		used--
	}
	for _, s := range attrSizes {
		if s >= used {
			return s
		}
	}
	return len(e)
}

// bytes is the attr in size bytes, its size field set accordingly.
func (e *encodedAttr) bytes(size int) []byte {
	le.PutUint32(e[4:], uint32(size))
	return e[:size]
}

// commonAttrSize is the size in which all attrs of a file fit: the header has
// one stride for all.
func commonAttrSize(events []*Event) int {
	size := attrSizes[0]
	for _, ev := range events {
		size = max(size, encodeAttr(&ev.Attr).size())
	}
	return size
}
