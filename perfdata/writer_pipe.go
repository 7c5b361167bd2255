package perfdata

import (
	"fmt"
	"math"
)

const (
	pipeHeaderSize  = 16 // struct perf_pipe_file_header: magic and its own size
	tracingDataSize = 12 // struct perf_record_header_tracing_data
)

// Kinds of EVENT_UPDATE (PERF_EVENT_UPDATE__* in
// tools/lib/perf/include/perf/event.h).
const (
	eventUpdateUnit  = 0
	eventUpdateScale = 1
	eventUpdateName  = 2
)

// startPipe writes what stands before the first record, in the order of perf
// (record__synthesize in tools/perf/builtin-record.c): attrs first, since
// features work on top of them.
func (w *Writer) startPipe() error {
	b := make([]byte, 0, pipeHeaderSize)
	b = append(b, fileMagic...)
	w.emit(le.AppendUint64(b, pipeHeaderSize))
	w.size = 0
	for _, ev := range w.meta.Events {
		a := encodeAttr(&ev.Attr)
		w.own(TypeHeaderAttr, 0, appendWords(a.bytes(a.size()), ev.IDs))
	}
	for _, ev := range w.meta.Events {
		w.updateEvent(ev, eventUpdateName, ev.Name)
	}
	w.appendUnits()
	for _, ft := range w.features() {
		w.pipeFeature(ft)
	}
	w.pipeBuildIDs()
	return w.err
}

// pipeFeature writes what is not a record of its own as HEADER_FEATURE. The
// end mark of perf, feature HEADER_LAST_FEATURE, is left out: its number
// changes with the version of perf, and an unexpected one is an error.
func (w *Writer) pipeFeature(ft feature) {
	body := append(le.AppendUint64(nil, uint64(ft.id)), ft.data...)
	switch {
	case ft.id == featBuildID || ft.id == featBranchStack:
		return // HEADER_BUILD_ID records; perf sees branch stacks in the attrs
	case ft.id == featTracingData:
		w.pipeTracingData(ft.data)
		return
	case ft.id == featEventDesc && recordHeaderSize+len(body) > maxRecord:
		return // says nothing that HEADER_ATTR and EVENT_UPDATE have not
	}
	w.own(TypeHeaderFeature, 0, body)
}

// pipeTracingData writes HEADER_TRACING_DATA, whose data lies behind the
// record, filled up to 8 bytes.
func (w *Writer) pipeTracingData(data []byte) {
	b := le.AppendUint64(nil, uint64(TypeHeaderTracingData)|uint64(tracingDataSize)<<48)
	b = le.AppendUint32(b, uint32(len(data)))
	b = append(b, data...)
	w.emit(appendZeros(b, -len(data)&7))
}

// pipeBuildIDs writes the build IDs not yet written.
func (w *Writer) pipeBuildIDs() {
	for ; w.buildIDs < len(w.meta.BuildIDs); w.buildIDs++ {
		w.emit(appendBuildID(nil, &w.meta.BuildIDs[w.buildIDs], TypeHeaderBuildID))
	}
}

func (w *Writer) finishPipe() {
	if w.err == nil {
		w.pipeBuildIDs()
	}
}

// appendUnits writes units and scales of the events, which have no place in a
// feature section: perf reads EVENT_UPDATE in files, too.
func (w *Writer) appendUnits() {
	for _, ev := range w.meta.Events {
		w.updateEvent(ev, eventUpdateUnit, ev.Unit)
		if ev.Scale != 0 && ev.Scale != 1 {
			scale := le.AppendUint64(nil, math.Float64bits(ev.Scale))
			w.updateEvent(ev, eventUpdateScale, string(scale))
		}
	}
}

// updateEvent writes an EVENT_UPDATE. It names the event by one of its ids,
// so nothing can be said of an event without.
func (w *Writer) updateEvent(ev *Event, kind uint64, value string) {
	if value == "" || len(ev.IDs) == 0 {
		return
	}
	body := le.AppendUint64(le.AppendUint64(nil, kind), ev.IDs[0])
	body = append(body, value...)
	if kind != eventUpdateScale {
		body = appendZeros(body, 8-len(body)&7) // the NUL, and up to a multiple of 8
	}
	w.own(TypeEventUpdate, 0, body)
}

// own writes a record of perf itself, made by the writer, filled up to a
// multiple of 8 bytes.
func (w *Writer) own(typ RecordType, misc Misc, body []byte) {
	size := (recordHeaderSize + len(body) + 7) &^ 7
	if size > maxRecord {
		if w.err == nil {
			w.err = fmt.Errorf("perfdata: write %s: %w", recordName(typ), tooLarge(size))
		}
		return
	}
	b := make([]byte, 0, size)
	b = le.AppendUint64(b, uint64(typ)|uint64(misc)<<32|uint64(size)<<48)
	b = append(b, body...)
	w.emit(appendZeros(b, size-len(b)))
}
