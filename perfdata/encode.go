package perfdata

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Encoding is always little endian, whatever Meta.ByteOrder says: a recording
// is written on, or about, a little-endian machine.
var le = binary.LittleEndian

const (
	recordHeaderSize = 8
	// maxRecord is the largest record: header.size is 16 bits wide and
	// records are multiples of 8.
	maxRecord = 0xffff &^ 7
)

// appendRecord appends the bytes of r: header, body and, where the attr asks
// for it, the sample_id trailer. A record without an Event is laid out as one
// of fallback, which is where perf looks for the layout of a record whose id
// is 0 (evlist__event2evsel in tools/perf/util/evlist.c). On error b comes
// back as it was.
func appendRecord(b []byte, r Record, fallback *Event) ([]byte, error) {
	h := r.Header()
	ev := h.Event
	if ev == nil {
		ev = fallback
	}
	typ, err := typeOf(r)
	if err != nil {
		return b, err
	}
	start := len(b)
	out := le.AppendUint64(b, uint64(typ)|uint64(h.Misc)<<32)
	switch r := r.(type) {
	case *Sample:
		if h.Event == nil {
			return b, fmt.Errorf("perfdata: write %s: the sample has no Event, so its layout is unknown", recordName(typ))
		}
		out, err = appendSample(out, r, &ev.Attr)
	case *Other:
		out, err = appendOther(out, r, typ)
	default:
		if out, err = appendBody(out, r, typ, ev); err == nil && ev.Flags&FlagSampleIDAll != 0 {
			out = appendSampleID(out, h, ev.SampleType)
		}
	}
	if err != nil {
		return b, fmt.Errorf("perfdata: write %s: %w", describe(r, typ, ev), err)
	}
	out = appendZeros(out, -(len(out)-start)&7)
	size := len(out) - start
	if size > maxRecord {
		return b, fmt.Errorf("perfdata: write %s: %w", describe(r, typ, ev), tooLarge(size))
	}
	le.PutUint16(out[start+6:], uint16(size))
	return out, nil
}

func tooLarge(size int) error {
	return fmt.Errorf("it would take %d bytes, a record holds at most %d", size, maxRecord)
}

// typeOf is the record's type: the one in its header, or where a struct has
// only one (MMAP2 for Mmap) that one.
func typeOf(r Record) (RecordType, error) {
	t := r.Header().Type
	if _, ok := r.(*Other); ok {
		return t, nil
	}
	usual, second := typesOf(r)
	switch {
	case usual == 0:
		return 0, fmt.Errorf("perfdata: write: unknown record %T", r)
	case t == usual, t == second && t != 0:
		return t, nil
	case t == 0 && (second == 0 || usual == TypeMmap2):
		return usual, nil
	}
	return 0, fmt.Errorf("perfdata: write %T: record type %d does not fit the struct", r, t)
}

// typesOf are the one or two types a struct stands for.
func typesOf(r Record) (usual, second RecordType) {
	switch r.(type) {
	case *Sample:
		return TypeSample, 0
	case *Mmap:
		return TypeMmap2, TypeMmap
	case *Task:
		return TypeFork, TypeExit
	case *Throttle:
		return TypeThrottle, TypeUnthrottle
	case *Switch:
		return TypeSwitch, TypeSwitchCPUWide
	case *Comm:
		return TypeComm, 0
	case *Lost:
		return TypeLost, 0
	case *LostSamples:
		return TypeLostSamples, 0
	case *Ksymbol:
		return TypeKsymbol, 0
	case *BPFEvent:
		return TypeBPFEvent, 0
	case *Namespaces:
		return TypeNamespaces, 0
	case *Cgroup:
		return TypeCgroup, 0
	case *TextPoke:
		return TypeTextPoke, 0
	case *Aux:
		return TypeAux, 0
	case *ItraceStart:
		return TypeItraceStart, 0
	case *AuxOutputHWID:
		return TypeAuxOutputHWID, 0
	case *Read:
		return TypeRead, 0
	case *CallchainDeferred:
		return TypeCallchainDeferred, 0
	}
	return 0, 0
}

// describe names a record in an error message.
func describe(r Record, typ RecordType, ev *Event) string {
	h := r.Header()
	return fmt.Sprintf("%s (event %q, tid %d, time %d)", recordName(typ), ev.Name, h.TID, h.Time)
}

// appendOther writes a body that is already bytes, trailer included. Records
// that the writer makes itself from Meta, and those with a payload behind
// header.size, would make the recording unreadable and are refused.
func appendOther(b []byte, r *Other, typ RecordType) ([]byte, error) {
	switch typ {
	case TypeHeaderAttr, TypeHeaderEventType, TypeHeaderTracingData, TypeHeaderBuildID, TypeHeaderFeature:
		return b, fmt.Errorf("header records are written from Meta")
	case TypeCompressed, TypeCompressed2:
		return b, fmt.Errorf("compressed records are made by the writer")
	case TypeAuxtrace:
		return b, fmt.Errorf("its trace data lies behind the record; use WriteRaw")
	case 0:
		return b, fmt.Errorf("the record has no type")
	}
	if len(r.Data) > maxRecord-recordHeaderSize {
		return b, tooLarge(recordHeaderSize + len(r.Data))
	}
	return append(b, r.Data...), nil
}

// appendSampleID appends struct sample_id, the trailer of every record but
// samples (perf_event.h, enum perf_event_type).
func appendSampleID(b []byte, h *Common, f SampleFormat) []byte {
	if f&FieldTID != 0 {
		b = appendPair(b, h.PID, h.TID)
	}
	if f&FieldTime != 0 {
		b = le.AppendUint64(b, h.Time)
	}
	if f&FieldID != 0 {
		b = le.AppendUint64(b, h.ID)
	}
	if f&FieldStreamID != 0 {
		b = le.AppendUint64(b, h.StreamID)
	}
	if f&FieldCPU != 0 {
		b = le.AppendUint64(b, uint64(h.CPU))
	}
	if f&FieldIdentifier != 0 {
		b = le.AppendUint64(b, h.ID)
	}
	return b
}

func appendPair(b []byte, lo, hi int32) []byte {
	return le.AppendUint64(b, uint64(uint32(lo))|uint64(uint32(hi))<<32)
}

func appendWords(b []byte, words []uint64) []byte {
	n := len(b)
	b = grow(b, 8*len(words))
	d := b[n:]
	for _, w := range words {
		le.PutUint64(d, w)
		d = d[8:]
	}
	return b
}

// grow extends b by n bytes, which the caller overwrites. Within the writer's
// buffer there is always room, so this only moves the end.
func grow(b []byte, n int) []byte {
	if len(b)+n <= cap(b) {
		return b[:len(b)+n]
	}
	return append(b, make([]byte, n)...)
}

func appendZeros(b []byte, n int) []byte {
	start := len(b)
	b = grow(b, n)
	clear(b[start:])
	return b
}

// appendString appends s as the kernel does: with its NUL, filled with zeros
// to a multiple of 8 (perf_event_comm_event, perf_event_mmap_event).
func appendString(b []byte, s string) ([]byte, error) {
	if len(s) > maxRecord {
		return b, tooLarge(len(s))
	}
	if i := strings.IndexByte(s, 0); i >= 0 {
		return b, fmt.Errorf("%q holds a NUL byte at %d", s, i)
	}
	b = append(b, s...)
	return appendZeros(b, 8-len(s)&7), nil
}
