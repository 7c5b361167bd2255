package record

import (
	"bytes"
	"encoding/binary"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// Counts is what has been recorded so far.
type Counts struct {
	Samples      uint64
	Lost         uint64 // records the ring buffers had no room for
	LostSamples  uint64 // samples the hardware dropped
	Throttled    uint64 // times
	Records      uint64
	Bytes        int64 // of the output
	First, Last  uint64
	BadRecords   uint64 // records without a sensible size: the rest of that drain is lost to the counts, not to the file
	NoBuildID    int
	EndedEarly   uint64 // threads that could not be followed: they ended first
	FinalPeriod  uint64 // of the sampling event, when it was tuned
	PeriodChange uint64 // times the period was changed by tuning
}

// scanner looks at the records as they pass: the headers of all, and the
// content of the few that matter to the recorder.
type scanner struct {
	Counts
	mapped   func(*perfdata.Mmap)
	forked   func(pid, tid, parent int32)
	sampled  func(id, time uint64, record []byte) // nil unless a strategy needs each sample
	write    func([]byte)                         // gets all bytes, in pieces of whole records; nil where somebody else does
	scratch  []byte
	tailSize int // of the sample_id fields at the end of records that are no samples
}

// maxPiece is the size of what write gets. perfdata.Writer has room for that
// much before it empties its buffer, so that what it writes at a time, and all
// a killed recorder leaves, ends with a whole record. perf 6.1 crashes (SIGBUS)
// on a file that does not.
const maxPiece = 48 << 10

// records walks over what is in a ring: whole records in a, then b. A record
// may begin in a and end in b; its header never does, as all sizes are
// multiples of eight.
func (s *scanner) records(a, b []byte) {
	over := s.part(a)
	if rest := len(a) - over; rest > 0 {
		size := int(binary.NativeEndian.Uint16(a[over+6:]))
		if size < 8 || size-rest > len(b) {
			s.BadRecords++
			return
		}
		rec := s.join(a, b, over, size)
		s.part(rec)
		b = b[size-rest:]
	}
	if s.part(b) != len(b) {
		s.BadRecords++
	}
}

// part walks over the records that lie in b as a whole, and returns where they
// end.
func (s *scanner) part(b []byte) int {
	written, off := 0, 0
	for off+8 <= len(b) {
		typ := perfdata.RecordType(binary.NativeEndian.Uint32(b[off:]))
		size := int(binary.NativeEndian.Uint16(b[off+6:]))
		if size < 8 || size > len(b)-off {
			break
		}
		if s.write != nil && off+size-written > maxPiece {
			s.write(b[written:off])
			written = off
		}
		s.Records++
		if typ == perfdata.TypeSample && s.sampled == nil {
			s.sample(b[off : off+size])
		} else if s.wants(typ) {
			s.record(typ, b[off:off+size])
		}
		off += size
	}
	if s.write != nil && off > written {
		s.write(b[written:off])
	}
	return off
}

// sample is the hot path: count it and keep its time.
func (s *scanner) sample(rec []byte) {
	s.Samples++
	if len(rec) >= sampleTimeAt+8 {
		s.time(binary.NativeEndian.Uint64(rec[sampleTimeAt:]))
	}
}

func (s *scanner) time(t uint64) {
	if s.First == 0 || t < s.First {
		s.First = t
	}
	s.Last = max(s.Last, t)
}

func (s *scanner) join(a, b []byte, off, size int) []byte {
	s.scratch = append(s.scratch[:0], a[off:]...)
	s.scratch = append(s.scratch, b[:size-(len(a)-off)]...)
	return s.scratch
}

func (s *scanner) wants(typ perfdata.RecordType) bool {
	switch typ {
	case perfdata.TypeSample, perfdata.TypeLost, perfdata.TypeLostSamples, perfdata.TypeThrottle, perfdata.TypeMmap2:
		return true
	case perfdata.TypeFork:
		return s.forked != nil
	}
	return false
}

func (s *scanner) record(typ perfdata.RecordType, rec []byte) {
	u64 := func(off int) uint64 {
		if off+8 > len(rec) {
			return 0
		}
		return binary.NativeEndian.Uint64(rec[off:])
	}
	u32 := func(off int) uint32 {
		if off+4 > len(rec) {
			return 0
		}
		return binary.NativeEndian.Uint32(rec[off:])
	}
	switch typ {
	case perfdata.TypeSample:
		s.Samples++
		s.time(u64(sampleTimeAt))
		s.sampled(u64(8), u64(sampleTimeAt), rec)
	case perfdata.TypeLost: // header, id, lost
		s.Lost += u64(16)
	case perfdata.TypeLostSamples: // header, lost
		s.LostSamples += u64(8)
	case perfdata.TypeThrottle:
		s.Throttled++
	case perfdata.TypeFork: // header, pid, ppid, tid, ptid, time
		s.forked(int32(u32(8)), int32(u32(16)), int32(u32(20)))
	case perfdata.TypeMmap2:
		s.mmap(rec, u32, u64)
	}
}

// mmap takes out of an MMAP2 record what names the file.
func (s *scanner) mmap(rec []byte, u32 func(int) uint32, u64 func(int) uint64) {
	const nameAt = 8 + 8 + 24 + 8 + 16 + 8 // header, pid tid, addr len pgoff, maj min, ino gen, prot flags
	if s.mapped == nil || len(rec) < nameAt+s.tailSize {
		return
	}
	name := rec[nameAt : len(rec)-s.tailSize]
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	s.mapped(&perfdata.Mmap{
		MapPID: int32(u32(8)), MapTID: int32(u32(12)), Maj: u32(40), Min: u32(44), Ino: u64(48), InoGen: u64(56),
		Filename: string(name),
	})
}
