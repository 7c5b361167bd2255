package perfdata

const (
	pipeHeaderSize  = 16 // struct perf_pipe_file_header: magic and its own size
	tracingDataSize = 12 // struct perf_record_header_tracing_data
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
		w.own(TypeHeaderAttr, appendWords(a.bytes(a.size()), ev.IDs))
	}
	for _, ev := range w.meta.Events {
		w.updateEvent(ev, updateName, appendName(nil, ev.Name))
	}
	w.eventDetails()
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
	case ft.id == FeatureBuildID || ft.id == FeatureBranchStack:
		return // HEADER_BUILD_ID records; perf sees branch stacks in the attrs
	case ft.id == FeatureTracingData:
		w.pipeTracingData(ft.data)
		return
	case ft.id == FeatureEventDesc && recordHeaderSize+len(body) > maxRecord:
		return // says nothing that HEADER_ATTR and EVENT_UPDATE have not
	}
	w.own(TypeHeaderFeature, body)
}

// pipeTracingData writes HEADER_TRACING_DATA, whose data lies behind the
// record. Its size includes what fills it up to 8 bytes
// (perf_event__synthesize_tracing_data in tools/perf/util/header.c).
func (w *Writer) pipeTracingData(data []byte) {
	pad := -len(data) & 7
	b := le.AppendUint64(nil, uint64(TypeHeaderTracingData)|uint64(tracingDataSize)<<48)
	b = le.AppendUint32(b, uint32(len(data)+pad))
	b = append(b, data...)
	w.emit(appendZeros(b, pad))
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
