package perfdata

import (
	"fmt"
	"math"
)

// eventDetails writes what is known of the events and has no feature section,
// as records that perf reads in files, too: unit, scale and CPUs as
// EVENT_UPDATE, CPU and thread of each id as ID_INDEX.
func (w *Writer) eventDetails() {
	for _, ev := range w.meta.Events {
		w.updateEvent(ev, updateUnit, appendName(nil, ev.Unit))
		if ev.Scale != 0 && ev.Scale != 1 {
			w.updateEvent(ev, updateScale, le.AppendUint64(nil, math.Float64bits(ev.Scale)))
		}
		w.updateEvent(ev, updateCPUs, encodeCPUs(ev.CPUs))
	}
	w.idIndex()
}

// updateEvent writes an EVENT_UPDATE. It names the event by one of its ids,
// so nothing can be said of an event without.
func (w *Writer) updateEvent(ev *Event, kind uint64, value []byte) {
	if len(value) == 0 || len(ev.IDs) == 0 {
		return
	}
	body := le.AppendUint64(nil, kind)
	body = le.AppendUint64(body, ev.IDs[0])
	w.own(TypeEventUpdate, append(body, value...))
}

// appendName appends a name with its NUL, nothing if it is empty.
func appendName(b []byte, s string) []byte {
	if s == "" {
		return b
	}
	return append(append(b, s...), 0)
}

// encodeCPUs is struct perf_record_cpu_map_data with a list.
func encodeCPUs(cpus []int32) []byte {
	if len(cpus) == 0 {
		return nil
	}
	b := le.AppendUint16(nil, cpuMapList)
	b = le.AppendUint16(b, uint16(len(cpus)))
	for _, c := range cpus {
		b = le.AppendUint16(b, uint16(c))
	}
	return b
}

// idIndex writes the ids of Meta.IDs that belong to an event, as perf refuses
// others, in as many ID_INDEX records as they need.
func (w *Writer) idIndex() {
	const entry = 32 // struct id_index_entry: id, idx, cpu, tid
	var body []byte
	flush := func() {
		if len(body) > 0 {
			w.own(TypeIDIndex, append(le.AppendUint64(nil, uint64(len(body)/entry)), body...))
			body = body[:0]
		}
	}
	for _, ev := range w.meta.Events {
		for _, id := range ev.IDs {
			at, ok := w.meta.IDs[id]
			if !ok {
				continue
			}
			if len(body)+entry > maxRecord-recordHeaderSize-8 {
				flush()
			}
			body = le.AppendUint64(body, id)
			body = le.AppendUint64(body, uint64(max(at.CPU, 0))) // perf's number of the ring buffer
			body = le.AppendUint64(body, uint64(at.CPU))
			body = le.AppendUint64(body, uint64(at.TID))
		}
	}
	flush()
}

// own writes a record of perf itself that the writer makes, filled up to a
// multiple of 8 bytes.
func (w *Writer) own(typ RecordType, body []byte) {
	size := (recordHeaderSize + len(body) + 7) &^ 7
	if size > maxRecord {
		if w.err == nil {
			w.err = fmt.Errorf("perfdata: write %s: %w", recordName(typ), tooLarge(size))
		}
		return
	}
	b := make([]byte, 0, size)
	b = le.AppendUint64(b, uint64(typ)|uint64(size)<<48)
	b = append(b, body...)
	w.emit(appendZeros(b, size-len(b)))
}
