package perfdata

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Reader reads one recording.
type Reader struct {
	meta    *Meta
	pump    *pump
	dec     decoder
	counts  counter
	framed  framedCounts
	stats   Stats
	total   int64
	files   []io.Closer
	started bool
	ended   chan struct{}
	pipe    bool
}

// Open opens a recording: a file, the directory of perf record --threads, or
// "-" for standard input.
func Open(path string) (*Reader, error) {
	if path == "-" {
		return NewReader(os.Stdin, "stdin")
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return openDir(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.files = append(r.files, f)
	return r, nil
}

// NewReader reads a recording from r; name stands for it in messages. Pipe
// mode is read as it comes. A recording in file mode has its header sections
// behind the data: it is read in place if r can seek, and otherwise copied to
// a temporary file first.
func NewReader(r io.Reader, name string) (*Reader, error) {
	if f, size, ok := inPlace(r); ok {
		return newFileReader(f, size, name)
	}
	head := make([]byte, pipeHeaderSize)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	big, size, err := parseMagic(head[:n], name)
	if err != nil {
		return nil, err
	}
	if size == pipeHeaderSize {
		return newPipeReader(r, big, -1, name)
	}
	f, err := spool(head, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	rd, err := newFileReader(f, st.Size(), name)
	if err != nil {
		f.Close()
		return nil, err
	}
	rd.files = append(rd.files, f)
	return rd, nil
}

type seekerAt interface {
	io.ReaderAt
	io.Seeker
}

// inPlace reports whether r can be read at any place, and its size.
func inPlace(r io.Reader) (seekerAt, int64, bool) {
	f, ok := r.(seekerAt)
	if !ok {
		return nil, 0, false
	}
	if osf, ok := r.(*os.File); ok {
		if st, err := osf.Stat(); err != nil || !st.Mode().IsRegular() {
			return nil, 0, false
		}
	}
	// A file given as standard input may have been read in part; what counts
	// is what is left of it, but nobody records two files into one.
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, false
	}
	return f, size, true
}

// spool copies what is left of r behind head into a file without a name.
func spool(head []byte, r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "perfcorrect-in-*")
	if err != nil {
		return nil, fmt.Errorf("a recording in file mode that cannot seek needs a temporary file: %w", err)
	}
	os.Remove(f.Name())
	if _, err := f.Write(head); err == nil {
		_, err = io.Copy(f, r)
		if err == nil {
			return f, nil
		}
	}
	f.Close()
	return nil, fmt.Errorf("copying the recording to a temporary file: %w", err)
}

func newReader(name string, big bool) *Reader {
	r := &Reader{
		meta: &Meta{Path: name, ByteOrder: byteOrder(big), IDs: make(map[uint64]Instance)},
		pump: newPump(name, big), framed: make(framedCounts), ended: make(chan struct{}),
	}
	r.dec = decoder{big: big, table: newEventTable(big)}
	return r
}

// newPipeReader reads a recording in pipe mode whose header was consumed.
// What perf writes about the recording comes first and is read at once.
func newPipeReader(src io.Reader, big bool, size int64, name string) (*Reader, error) {
	r := newReader(name, big)
	r.pipe, r.meta.Pipe = true, true
	r.total = max(size, 0)
	s := r.pump.open(name, src, pipeHeaderSize, size)
	for {
		h, raw, _ := s.framer.next()
		if raw == nil || !applies(h.typ) {
			break
		}
		n := h.size
		if h.typ == TypeHeaderTracingData {
			if n = s.framer.tracing(h, raw); n > s.framer.lim-s.framer.pos {
				break // cut; the pump will say so
			}
			raw = s.framer.window(n)[:n]
		}
		r.counts.add(h.typ)
		if !r.apply(h, raw) {
			r.stats.Malformed++
		}
		s.framer.take(n)
	}
	// The pump finds times with the same events.
	for _, ev := range r.meta.Events {
		r.pump.table.add(ev)
	}
	if err := s.framer.err; err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: offset %d: %w", name, s.framer.offset(), err)
	}
	return r, nil
}

// newFileReader reads a recording that can be read at any place, in file or
// pipe mode.
func newFileReader(f seekerAt, size int64, name string) (*Reader, error) {
	head, _ := readAt(f, size, section{0, fileHeaderSize})
	big, headSize, err := parseMagic(head[:min(16, len(head))], name)
	if err != nil {
		return nil, err
	}
	if headSize == pipeHeaderSize {
		src := io.NewSectionReader(f, pipeHeaderSize, max(0, size-pipeHeaderSize))
		return newPipeReader(src, big, size, name)
	}
	h, err := parseFileHeader(head, big, name)
	if err != nil {
		return nil, err
	}
	r := newReader(name, big)
	if err := r.readSections(f, size, h); err != nil {
		return nil, err
	}
	r.addData(f, size, h, name)
	return r, nil
}

// addData makes the data section of a file the first stream.
func (r *Reader) addData(f io.ReaderAt, size int64, h *fileHeader, name string) {
	off := min(h.data.off, uint64(size))
	n := uint64(size) - off
	switch {
	case h.data.size == 0:
		// perf record sets the size last of all.
		r.warn("data size is 0: perf record was killed before it finished; reading to the end of the file")
	case h.data.off > uint64(size):
		r.pump.path = name
		r.pump.damage(size, fmt.Sprintf("the data section begins at %d, behind the end of the file", h.data.off), 0)
	case h.data.size > n:
		r.pump.path = name
		r.pump.hurtAtEnd = &Damage{
			Path: name, Offset: size,
			What: fmt.Sprintf("the file ends %d bytes before the end of its data, and lacks the sections behind", h.data.size-n),
		}
	default:
		n = h.data.size
	}
	r.pump.open(name, io.NewSectionReader(f, int64(off), int64(n)), int64(off), int64(off+n))
	r.total += int64(off + n)
}

func (r *Reader) warn(format string, args ...any) {
	r.stats.Warnings = append(r.stats.Warnings, r.meta.Path+": "+fmt.Sprintf(format, args...))
}

// Meta returns what the recording says about itself. In pipe mode it grows
// while Records runs.
func (r *Reader) Meta() *Meta { return r.meta }

// Progress returns the bytes read so far and their total, 0 if unknown. It
// may be called while Records runs.
func (r *Reader) Progress() (done, total int64) { return r.pump.done.Load(), r.total }

// Records iterates over the records in time order; those without a time keep
// their place behind the record they follow. It can be called once. An error
// says that the input could not be read; a recording that is cut or corrupt
// ends without one, and Stats().Damage says where.
//
// What perf recorded about the recording itself goes to Meta instead:
// HEADER_ATTR, HEADER_EVENT_TYPE, HEADER_TRACING_DATA, HEADER_BUILD_ID,
// HEADER_FEATURE, EVENT_UPDATE and ID_INDEX. FINISHED_ROUND, FINISHED_INIT and
// COMPRESSED have done their work.
func (r *Reader) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if r.started {
			yield(nil, errors.New("perfdata: Records called twice"))
			return
		}
		r.started = true
		go func() {
			defer close(r.ended)
			r.pump.run()
		}()
		for b := range r.pump.out {
			if !r.deliver(b, yield) {
				r.halt()
				return
			}
			select {
			case r.pump.back <- b:
			default:
			}
		}
		if len(r.meta.Events) == 0 {
			r.warn("the recording describes no event")
		}
	}
}

// deliver decodes a batch; false if the consumer wants no more.
func (r *Reader) deliver(b *batch, yield func(Record, error) bool) bool {
	for i := range b.recs {
		at := &b.recs[i]
		raw := b.buf[at.pos : at.pos+at.n]
		h := parseHeader(raw, r.dec.big)
		r.counts.add(h.typ)
		if applies(h.typ) {
			if !r.apply(h, raw) {
				r.stats.Malformed++
			}
			continue
		}
		rec, v := r.dec.decode(h, raw, at.offset)
		switch v {
		case malformed:
			r.stats.Malformed++
			continue
		case unknownID:
			r.stats.UnknownID++
			continue
		}
		switch l := rec.(type) {
		case *Lost:
			r.stats.Lost += int64(l.Count)
		case *LostSamples:
			r.stats.LostSamples += int64(l.Count)
		}
		if !yield(rec, nil) {
			return false
		}
	}
	r.framed = b.framed
	r.stats.OutOfOrder = b.outOfOrder
	if b.damage != nil {
		r.stats.Damage = b.damage
	}
	if b.err != nil {
		return yield(nil, b.err)
	}
	return true
}

// halt stops the pump. It waits for it only where reading cannot block.
func (r *Reader) halt() {
	close(r.pump.stop)
	if !r.pipe || r.total > 0 {
		<-r.ended
	}
}

// Close frees what the reader holds. The loop over Records must have ended.
func (r *Reader) Close() error {
	var err error
	for _, f := range r.files {
		if e := f.Close(); err == nil {
			err = e
		}
	}
	r.files = nil
	return err
}
