package perfdata

import "fmt"

// appendBody appends what lies between header and sample_id of every kernel
// record but SAMPLE, in the order of enum perf_event_type in
// include/uapi/linux/perf_event.h.
func appendBody(b []byte, r Record, typ RecordType, ev *Event) ([]byte, error) {
	switch r := r.(type) {
	case *Mmap:
		return appendMmap(b, r, typ)
	case *Comm:
		return appendString(appendPair(b, r.CommPID, r.CommTID), r.Comm)
	case *Task:
		b = appendPair(b, r.TaskPID, r.TaskPPID)
		b = appendPair(b, r.TaskTID, r.TaskPTID)
		return le.AppendUint64(b, r.TaskTime), nil
	case *Lost:
		b = le.AppendUint64(b, r.LostID)
		return le.AppendUint64(b, r.Count), nil
	case *LostSamples:
		return le.AppendUint64(b, r.Count), nil
	case *Throttle:
		b = le.AppendUint64(b, r.ThrottleTime)
		b = le.AppendUint64(b, r.ThrottleID)
		return le.AppendUint64(b, r.Stream), nil
	case *Switch:
		if typ == TypeSwitchCPUWide {
			b = appendPair(b, r.NextPrevPID, r.NextPrevTID)
		}
		return b, nil
	case *Read:
		b = appendPair(b, r.ReadPID, r.ReadTID)
		return appendRead(b, ev.ReadFormat, r.Counters, r.TimeEnabled, r.TimeRunning)
	case *Namespaces:
		return appendNamespaces(b, r)
	case *Ksymbol:
		return appendKsymbol(b, r)
	case *BPFEvent:
		b = le.AppendUint16(b, r.EventType)
		b = le.AppendUint16(b, r.BPFFlags)
		b = le.AppendUint32(b, r.ProgID)
		return append(b, r.Tag[:]...), nil
	case *Cgroup:
		return appendString(le.AppendUint64(b, r.CgroupID), r.Path)
	case *TextPoke:
		return appendTextPoke(b, r)
	case *Aux:
		b = le.AppendUint64(b, r.AuxOffset)
		b = le.AppendUint64(b, r.AuxSize)
		return le.AppendUint64(b, r.AuxFlags), nil
	case *ItraceStart:
		return appendPair(b, r.TracePID, r.TraceTID), nil
	case *AuxOutputHWID:
		return le.AppendUint64(b, r.HWID), nil
	case *CallchainDeferred:
		return appendChain(le.AppendUint64(b, r.Cookie), r.Callchain)
	}
	return b, fmt.Errorf("no layout for %T", r)
}

func appendMmap(b []byte, r *Mmap, typ RecordType) ([]byte, error) {
	b = appendPair(b, r.MapPID, r.MapTID)
	b = le.AppendUint64(b, r.Addr)
	b = le.AppendUint64(b, r.Len)
	b = le.AppendUint64(b, r.Pgoff)
	if typ == TypeMmap2 {
		if r.Misc&MiscMmapBuildID != 0 {
			if len(r.BuildID) > maxBuildID {
				return b, fmt.Errorf("a build ID of %d bytes, MMAP2 has room for %d", len(r.BuildID), maxBuildID)
			}
			b = le.AppendUint32(b, uint32(len(r.BuildID)))
			b = append(b, r.BuildID...)
			b = appendZeros(b, maxBuildID-len(r.BuildID))
		} else {
			b = le.AppendUint32(b, r.Maj)
			b = le.AppendUint32(b, r.Min)
			b = le.AppendUint64(b, r.Ino)
			b = le.AppendUint64(b, r.InoGen)
		}
		b = le.AppendUint32(b, r.Prot)
		b = le.AppendUint32(b, r.MapFlags)
	}
	return appendString(b, r.Filename)
}

func appendNamespaces(b []byte, r *Namespaces) ([]byte, error) {
	if n := 16 * len(r.Links); n > maxRecord {
		return b, tooLarge(n)
	}
	b = appendPair(b, r.NSPID, r.NSTID)
	b = le.AppendUint64(b, uint64(len(r.Links)))
	for _, l := range r.Links {
		b = le.AppendUint64(b, l.Dev)
		b = le.AppendUint64(b, l.Ino)
	}
	return b, nil
}

func appendKsymbol(b []byte, r *Ksymbol) ([]byte, error) {
	var flags uint16
	if r.Unregister {
		flags = 1 // PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER
	}
	b = le.AppendUint64(b, r.Addr)
	b = le.AppendUint32(b, r.Len)
	b = le.AppendUint16(b, r.KsymType)
	b = le.AppendUint16(b, flags)
	return appendString(b, r.Name)
}

func appendTextPoke(b []byte, r *TextPoke) ([]byte, error) {
	n := len(r.Old) + len(r.New)
	if n > maxRecord {
		return b, tooLarge(n)
	}
	b = le.AppendUint64(b, r.Addr)
	b = le.AppendUint16(b, uint16(len(r.Old)))
	b = le.AppendUint16(b, uint16(len(r.New)))
	b = append(b, r.Old...)
	b = append(b, r.New...)
	return appendZeros(b, -(4+n)&7), nil // before the trailer, perf_event_text_poke
}
