package perfdata

import (
	"errors"
	"fmt"
	"io"
)

// Writer writes a recording. It encodes into one buffer and allocates nothing
// per record. The first error stays: every later call returns it, and nothing
// is written after it.
//
// The bytes are little endian. Each attr is written in the smallest size that
// holds its fields (in a file, the largest of these for all), so that old
// perfs read it; perf 6.1 refuses files with more than 128.
type Writer struct {
	meta  *Meta
	out   io.Writer
	file  *fileLayout // nil in pipe mode
	zstd  *zstdPacker // nil without compression
	buf   []byte      // whole records, not yet packed or written
	size  int64       // bytes written to out since the records began
	times TimeRange   // of the samples written
	seen  bool        // times is set
	err   error
	done  bool

	buildIDs int // entries of meta.BuildIDs already in a pipe
}

// WriteOptions say how the records are stored.
type WriteOptions struct {
	// Zstd compresses the kernel's records as perf record -z does: one zstd
	// stream inside COMPRESSED records. It is perf's level, 1 (fast) to 22
	// (small), mapped to the nearest the compressor has; 0 writes plain
	// records.
	Zstd int
}

const (
	writeBufferSize = 1 << 19
	flushAt         = writeBufferSize - maxRecord // from here a record might not fit
)

var errWriterClosed = errors.New("perfdata: write after Close")

// NewFileWriter starts a file-mode recording (perf record -o FILE) at the
// beginning of w, which must be empty (and, a file, not opened O_APPEND). The
// header is written at once, and its data size each time records reach w, so
// that a recording whose writer dies is readable up to there, though it has
// no features and perf therefore cannot unpack it if it is compressed. Close
// appends the feature sections and completes the header. Meta.Events must be
// complete now, everything else may be filled in until Close.
//
// Without Meta.SampleTime the times of the samples passed to Write are stored.
// A file of our own is never a directory or compressed unless opts say so:
// Meta.DirFormat and Meta.Compressed are ignored.
func NewFileWriter(w io.WriteSeeker, meta *Meta, opts WriteOptions) (*Writer, error) {
	wr, err := newWriter(w, meta, opts)
	if err != nil {
		return nil, err
	}
	wr.file = &fileLayout{w: w}
	if err := wr.file.start(meta.Events); err != nil {
		return nil, err
	}
	wr.eventDetails()
	return wr, wr.err
}

// NewPipeWriter starts a pipe-mode recording (perf record -o -) on w: attrs,
// names and features go out as records before the first record of the
// caller, so Meta must be complete now; only build IDs added to it later are
// still written, by Close.
func NewPipeWriter(w io.Writer, meta *Meta, opts WriteOptions) (*Writer, error) {
	wr, err := newWriter(w, meta, opts)
	if err != nil {
		return nil, err
	}
	if err := wr.startPipe(); err != nil {
		return nil, err
	}
	return wr, nil
}

func newWriter(w io.Writer, meta *Meta, opts WriteOptions) (*Writer, error) {
	if err := checkLayouts(meta.Events); err != nil {
		return nil, err
	}
	wr := &Writer{meta: meta, out: w, buf: make([]byte, 0, writeBufferSize)}
	if opts.Zstd != 0 {
		var err error
		if wr.zstd, err = newZstdPacker(opts.Zstd); err != nil {
			return nil, err
		}
	}
	return wr, nil
}

// checkLayouts refuses events whose records a reader could not tell apart:
// it finds the id, and from it the layout, at one place for all of them
// (evlist__valid_sample_type and evlist__valid_sample_id_all in
// tools/perf/util/evlist.c).
func checkLayouts(events []*Event) error {
	if len(events) == 0 {
		return errors.New("perfdata: a recording needs at least one event")
	}
	first := events[0]
	for i, ev := range events {
		for j, member := range ev.Group {
			if ev.Group[0] == ev && (i+j >= len(events) || events[i+j] != member) {
				return fmt.Errorf("perfdata: the group of %q is not its leader and what follows it in Meta.Events", ev.Name)
			}
		}
	}
	for _, ev := range events[1:] {
		switch {
		case (ev.Flags^first.Flags)&FlagSampleIDAll != 0:
			return fmt.Errorf("perfdata: events %q and %q differ in sample_id_all", first.Name, ev.Name)
		case first.SampleType&ev.SampleType&FieldIdentifier != 0:
		case first.SampleType&FieldID == 0 || first.SampleType != ev.SampleType:
			return fmt.Errorf("perfdata: samples of %q and %q cannot be told apart: several events need PERF_SAMPLE_IDENTIFIER", first.Name, ev.Name)
		}
	}
	return nil
}

// Write appends one record. Samples need their Event; other records are laid
// out as those of their Event, or of the first event if they have none. The
// record's Type may be 0 where its struct has only one (an Mmap is then
// MMAP2). Common.Has and Offset play no part: which fields are written is the
// attr's matter.
//
// Records should come roughly in time order; where they do not, FinishedRound
// tells readers how far they may sort.
func (w *Writer) Write(r Record) error {
	if err := w.ready(); err != nil {
		return err
	}
	if other, ok := r.(*Other); ok && other.Type >= TypeHeaderAttr {
		return w.writeOwn(other)
	}
	var err error
	if w.buf, err = appendRecord(w.buf, r, w.meta.Events[0]); err != nil {
		w.err = err
		return err
	}
	if s, ok := r.(*Sample); ok {
		w.sawTime(s.Event, s.Time)
	}
	return nil
}

// writeOwn writes a record of perf itself. As in perf record -z it stands
// uncompressed between the COMPRESSED records.
func (w *Writer) writeOwn(r *Other) error {
	if w.zstd != nil {
		w.drain()
	}
	if w.err != nil {
		return w.err
	}
	w.buf, w.err = appendRecord(w.buf, r, w.meta.Events[0])
	if w.zstd != nil {
		w.emit(w.buf)
		w.buf = w.buf[:0]
	}
	return w.err
}

// WriteRaw appends bytes of ring buffer as they are: whole records, though one
// may be spread over consecutive calls. They are not looked at, so the times
// of samples among them are unknown to the writer: set Meta.SampleTime.
func (w *Writer) WriteRaw(b []byte) error {
	for len(b) > 0 {
		if err := w.ready(); err != nil {
			return err
		}
		n := min(len(b), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, b[:n]...)
		b = b[n:]
	}
	return w.err
}

// FinishedRound writes FINISHED_ROUND: no record after it is older than the
// newest record before the previous FINISHED_ROUND. A recorder writes it each
// time it has emptied all its ring buffers; it bounds what a reader must hold
// back to sort.
func (w *Writer) FinishedRound() error {
	return w.Write(&Other{Common: Common{Type: TypeFinishedRound}})
}

// Flush hands everything to the underlying writer, so that it survives the
// end of the program.
func (w *Writer) Flush() error {
	if w.done {
		return errWriterClosed
	}
	w.drain()
	return w.err
}

// Size is the number of bytes of records so far, compressed if they are; what
// is still buffered counts uncompressed.
func (w *Writer) Size() int64 { return w.size + int64(len(w.buf)) }

// Close writes what is buffered and completes the recording: in a file the
// feature sections and the header. It does not close the underlying writer.
// After a record that could not be encoded Close still completes the file
// with what came before, and returns that error.
func (w *Writer) Close() error {
	if w.done {
		return w.err
	}
	w.done = true
	first := w.err
	if errors.As(first, new(*writeError)) {
		return first
	}
	w.err = nil
	w.drain()
	if w.file != nil {
		w.finishFile()
	} else {
		w.finishPipe()
	}
	if first != nil {
		w.err = first
	}
	return w.err
}

// writeError is a failure of the underlying writer, after which nothing can
// be completed.
type writeError struct{ err error }

func (e *writeError) Error() string { return "perfdata: write: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// ready makes room for the largest record.
func (w *Writer) ready() error {
	if w.done {
		if w.err != nil {
			return w.err
		}
		return errWriterClosed
	}
	if w.err == nil && len(w.buf) > flushAt {
		w.drain()
	}
	return w.err
}

// drain moves the buffered records to the underlying writer, compressed if
// asked for.
func (w *Writer) drain() {
	if w.zstd == nil {
		w.emit(w.buf)
	} else if err := w.zstd.pack(w.buf, w.emit); err != nil && w.err == nil {
		w.err = err
	}
	w.buf = w.buf[:0]
	if w.file != nil && w.err == nil {
		w.err = w.file.setDataSize(w.size)
	}
}

// emit writes bytes of the data section.
func (w *Writer) emit(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	n, err := w.out.Write(b)
	w.size += int64(n)
	if err != nil {
		w.err = &writeError{err}
	}
}

func (w *Writer) sawTime(ev *Event, t uint64) {
	if ev.SampleType&FieldTime == 0 {
		return
	}
	if !w.seen {
		w.times, w.seen = TimeRange{t, t}, true
	}
	w.times.First, w.times.Last = min(w.times.First, t), max(w.times.Last, t)
}
