package perfdata

import "io"

// The header of a file (struct perf_file_header in tools/perf/util/header.h):
// magic, its own size, the size of an entry of the attrs section, three
// sections (attrs, data, event_types) and a bitmap of 256 feature bits. The
// feature sections follow the data section, headed by a table of their
// offsets and sizes in bit order.
const (
	fileMagic       = "PERFILE2"
	fileHeaderSize  = 104
	fileSectionSize = 16
	fileFeatureBits = 256
)

// fileLayout is where the sections of a file under construction lie.
type fileLayout struct {
	w         io.WriteSeeker
	attrEntry int // bytes of an attr and its ids section
	attrs     int64
	attrsSize int64
	data      int64
}

// start writes header, ids, attrs, in that order, as perf does.
func (f *fileLayout) start(events []*Event) error {
	attrSize := commonAttrSize(events)
	f.attrEntry = attrSize + fileSectionSize
	b := make([]byte, fileHeaderSize)
	idsAt := make([]int, len(events))
	for i, ev := range events {
		idsAt[i] = len(b)
		b = appendWords(b, ev.IDs)
	}
	f.attrs = int64(len(b))
	for i, ev := range events {
		b = append(b, encodeAttr(&ev.Attr).bytes(attrSize)...)
		b = le.AppendUint64(b, uint64(idsAt[i]))
		b = le.AppendUint64(b, uint64(8*len(ev.IDs)))
	}
	f.attrsSize = int64(len(b)) - f.attrs
	f.data = int64(len(b))
	copy(b, f.header(0, nil))
	if _, err := f.w.Write(b); err != nil {
		return &writeError{err}
	}
	return nil
}

// header is the file header for a data section of that size.
func (f *fileLayout) header(dataSize int64, features []feature) []byte {
	b := make([]byte, 0, fileHeaderSize)
	b = append(b, fileMagic...)
	b = le.AppendUint64(b, fileHeaderSize)
	b = le.AppendUint64(b, uint64(f.attrEntry))
	for _, v := range []int64{f.attrs, f.attrsSize, f.data, dataSize, 0, 0} {
		b = le.AppendUint64(b, uint64(v))
	}
	var bitmap [fileFeatureBits / 64]uint64
	for _, ft := range features {
		bitmap[ft.id/64] |= 1 << (ft.id % 64)
	}
	return appendWords(b, bitmap[:])
}

// finish appends the feature sections behind the data and completes the
// header.
func (f *fileLayout) finish(dataSize int64, features []feature) error {
	at := f.data + dataSize + int64(len(features)*fileSectionSize)
	var b []byte
	for _, ft := range features {
		b = le.AppendUint64(b, uint64(at))
		b = le.AppendUint64(b, uint64(len(ft.data)))
		at += int64(len(ft.data))
	}
	for _, ft := range features {
		b = append(b, ft.data...)
	}
	if _, err := f.w.Write(b); err != nil {
		return &writeError{err}
	}
	return f.overwrite(0, f.header(dataSize, features))
}

// setDataSize makes what is in the file a whole recording, if one without
// features: perf 6.1 reads nothing from a file whose data size is still 0
// ("failed to process sample"), not even from its own.
func (f *fileLayout) setDataSize(n int64) error {
	const at = 48 // perf_file_header.data.size
	return f.overwrite(at, le.AppendUint64(nil, uint64(n)))
}

// overwrite replaces bytes of the header and returns to the end.
func (f *fileLayout) overwrite(at int64, b []byte) error {
	if _, err := f.w.Seek(at, io.SeekStart); err != nil {
		return &writeError{err}
	}
	if _, err := f.w.Write(b); err != nil {
		return &writeError{err}
	}
	if _, err := f.w.Seek(0, io.SeekEnd); err != nil {
		return &writeError{err}
	}
	return nil
}

func (w *Writer) finishFile() {
	if w.err != nil {
		return
	}
	w.err = w.file.finish(w.size, w.features())
}
