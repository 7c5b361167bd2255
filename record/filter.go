package record

import (
	"encoding/binary"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// filter keeps the records of some processes and their children, where events
// had to be opened on CPUs to record them.
type filter struct {
	pids map[uint32]bool
	tail int // bytes of sample_id behind records that are no samples
}

// keep decides on one record, and learns from it.
func (f *filter) keep(typ perfdata.RecordType, rec []byte) bool {
	u32 := func(off int) uint32 {
		if off < 0 || off+4 > len(rec) {
			return ^uint32(0)
		}
		return binary.NativeEndian.Uint32(rec[off:])
	}
	switch typ {
	case perfdata.TypeSample: // header, identifier, ip, pid
		return f.pids[u32(24)]
	case perfdata.TypeFork: // header, pid, ppid
		if f.pids[u32(12)] {
			f.pids[u32(8)] = true
			return true
		}
		delete(f.pids, u32(8)) // a number used again by somebody else's child
		return false
	case perfdata.TypeMmap, perfdata.TypeMmap2, perfdata.TypeComm, perfdata.TypeExit:
		return f.pids[u32(8)]
	case perfdata.TypeSwitch, perfdata.TypeSwitchCPUWide:
		return f.pids[u32(len(rec)-f.tail)] // sample_id begins with pid and tid
	}
	return true // losses, throttling: of the rings all share
}

// drainRecords is drain for recordings in which records are looked at one by
// one: left out, or given the period they were really taken with.
func (r *recorder) drainRecords(a, b []byte) {
	n := len(a) + len(b)
	for off := 0; off+8 <= n && r.writeErr == nil; {
		rec := a[min(off, len(a)):]
		if off >= len(a) {
			rec = b[off-len(a):]
		}
		typ := perfdata.RecordType(binary.NativeEndian.Uint32(rec))
		size := int(binary.NativeEndian.Uint16(rec[6:]))
		if size < 8 || off+size > n {
			r.scan.BadRecords++
			return
		}
		if len(rec) < size {
			rec = r.scan.join(a, b, off, size)
		}
		rec = rec[:size]
		off += size
		if r.filter != nil && !r.filter.keep(typ, rec) {
			continue
		}
		if typ == perfdata.TypeSample {
			rec = r.truePeriod(rec)
		}
		r.scan.write = nil
		r.writeErr = r.writer.WriteRaw(rec)
		r.scan.part(rec)
	}
}

// truePeriod corrects the period in a sample of a timer whose period was
// changed: the kernel goes on showing the first (see jitter).
func (r *recorder) truePeriod(rec []byte) []byte {
	const periodAt = 8 + 8*5 // header, identifier, ip, tid, time, cpu
	if len(rec) < periodAt+8 {
		return rec
	}
	p, ok := r.periods[binary.NativeEndian.Uint64(rec[8:])]
	if !ok {
		return rec
	}
	r.scan.scratch = append(r.scan.scratch[:0], rec...) // the ring cannot be written
	binary.NativeEndian.PutUint64(r.scan.scratch[periodAt:], p)
	return r.scan.scratch
}
