package perfdata

import (
	"errors"
	"fmt"
	"io"
)

// Raw record sizes: perf_event_header is 8 bytes, its size field 16 bits wide.
const (
	headerSize    = 8
	maxRecordSize = 1<<16 - 1
	chunkSize     = 1 << 20
	firstChunk    = 1 << 17
)

// A chunk is a piece of the input, with whole records in it that wait to be
// passed on. live counts them; at 0 the memory is used again.
type chunk struct {
	buf  []byte
	base int64 // of buf[0] in the stream
	live int
	open bool // still being filled
}

// chunkPool keeps chunks that are done with. It belongs to one goroutine.
type chunkPool struct{ free []*chunk }

func (p *chunkPool) get(size int) *chunk {
	if size <= chunkSize {
		if n := len(p.free); n > 0 {
			c := p.free[n-1]
			p.free = p.free[:n-1]
			*c = chunk{buf: c.buf, open: true}
			return c
		}
		size = chunkSize
	}
	return &chunk{buf: make([]byte, size), open: true}
}

func (p *chunkPool) put(c *chunk) {
	if c.live == 0 && !c.open && len(c.buf) == chunkSize && len(p.free) < 8 {
		p.free = append(p.free, c)
	}
}

// release says that one record of c has been passed on.
func (p *chunkPool) release(c *chunk) {
	c.live--
	p.put(c)
}

// A framer cuts a byte stream into raw records.
type framer struct {
	src  io.Reader
	pool *chunkPool
	big  bool
	end  int64 // of the stream, -1 if unknown

	cur      *chunk
	pos, lim int // the window of cur.buf not consumed yet
	err      error
}

func newFramer(src io.Reader, pool *chunkPool, base, end int64, big bool) *framer {
	size := int64(firstChunk)
	if end >= 0 {
		size = min(size, end-base)
	}
	return &framer{src: src, pool: pool, end: end, big: big, cur: &chunk{buf: make([]byte, size), base: base, open: true}}
}

// offset of the next byte to consume.
func (f *framer) offset() int64 { return f.cur.base + int64(f.pos) }

// window returns at least n unconsumed bytes, fewer only at the end of the
// stream or after an error (f.err). Memory grows with what is really read.
func (f *framer) window(n int) []byte {
	if f.end >= 0 {
		n = int(min(int64(n), f.end-f.offset()))
	}
	for f.lim-f.pos < n && f.err == nil {
		if f.pos+n > len(f.cur.buf) && (f.pos > 0 || f.lim == len(f.cur.buf)) {
			f.advance(n)
		}
		got, err := f.src.Read(f.cur.buf[f.lim:])
		f.lim += got
		if err != nil {
			f.err = err
		}
	}
	return f.cur.buf[f.pos:f.lim]
}

// advance moves the unconsumed bytes to the start of another chunk with room
// for n, or for twice what is there already.
func (f *framer) advance(n int) {
	old := f.cur
	size := min(n, max(chunkSize, 2*(f.lim-f.pos)))
	f.cur = f.pool.get(size)
	f.cur.base = old.base + int64(f.pos)
	f.lim = copy(f.cur.buf, old.buf[f.pos:f.lim])
	f.pos = 0
	old.open = false
	f.pool.put(old)
}

// skip passes over n bytes and returns how many there were.
func (f *framer) skip(n int64) int64 {
	have := min(n, int64(f.lim-f.pos))
	f.pos += int(have)
	left := n - have
	if left == 0 {
		return have
	}
	if s, ok := f.src.(io.Seeker); ok && f.end >= 0 {
		left = min(left, f.end-f.offset())
		if _, err := s.Seek(left, io.SeekCurrent); err == nil {
			f.cur.base += left
			return have + left
		}
	}
	for left > 0 {
		w := f.window(int(min(left, chunkSize)))
		if len(w) == 0 {
			break
		}
		k := min(left, int64(len(w)))
		f.pos += int(k)
		have += k
		left -= k
	}
	return have
}

// unread is how many bytes of the stream were not consumed, -1 if unknown.
func (f *framer) unread() int64 {
	if f.end < 0 {
		if errors.Is(f.err, io.EOF) {
			return int64(f.lim - f.pos)
		}
		return -1
	}
	return max(0, f.end-f.offset())
}

// rawHeader is a perf_event_header.
type rawHeader struct {
	typ  RecordType
	misc Misc
	size int
}

func parseHeader(b []byte, big bool) rawHeader {
	return rawHeader{RecordType(load32(b, big)), Misc(load16(b[4:], big)), int(load16(b[6:], big))}
}

// next returns the next whole record without consuming it. what says why
// there is none: "" at the regular end.
func (f *framer) next() (h rawHeader, raw []byte, what string) {
	w := f.window(headerSize)
	if len(w) == 0 {
		return h, nil, ""
	}
	if len(w) < headerSize {
		return h, nil, fmt.Sprintf("%d stray bytes after the last record", len(w))
	}
	h = parseHeader(w, f.big)
	if h.typ == TypeCompressed2 {
		return f.compressed2(h)
	}
	if h.size < headerSize {
		return h, nil, fmt.Sprintf("record of type %d has size %d, less than its header", h.typ, h.size)
	}
	if w = f.window(h.size); len(w) < h.size {
		return h, nil, fmt.Sprintf("record of type %d needs %d bytes, %d are there", h.typ, h.size, len(w))
	}
	return h, w[:h.size:h.size], ""
}

// tracing returns the size of a HEADER_TRACING_DATA record with its data, and
// makes as much of it available as there is. perf writes the data behind the
// record, simpleperf into it.
func (f *framer) tracing(h rawHeader, raw []byte) int {
	if h.size < headerSize+4 {
		return h.size
	}
	n := int(load32(raw[headerSize:], f.big))
	if n <= h.size-headerSize-4 {
		return h.size
	}
	f.window(h.size + n)
	return h.size + n
}

// take consumes a record that next returned.
func (f *framer) take(n int) { f.pos += n }

// compressed2 is next for PERF_RECORD_COMPRESSED2, whose header.size cannot
// be trusted: record__pushfn (tools/perf/builtin-record.c, Linux 6.16) rounds
// up to 8 bytes in 16 bits, so that 65529 bytes or more wrap around. data_size
// is right then, and there is no padding.
func (f *framer) compressed2(h rawHeader) (rawHeader, []byte, string) {
	w := f.window(headerSize + 8)
	if len(w) < headerSize+8 {
		return h, nil, "COMPRESSED2 record is cut"
	}
	dataSize := load64(w[8:], f.big)
	size := uint64(h.size)
	if need := dataSize + 16; dataSize > 1<<40 {
		return h, nil, fmt.Sprintf("COMPRESSED2 record says it holds %d bytes", dataSize)
	} else if need > size {
		size = need
	}
	if w = f.window(int(size)); uint64(len(w)) < size {
		return h, nil, fmt.Sprintf("COMPRESSED2 record needs %d bytes, %d are there", size, len(w))
	}
	h.size = int(size)
	return h, w[:size:size], ""
}

// compressed2Parts returns the pieces of the zstd stream in a COMPRESSED2
// record. When several were written at once only the size of the first was
// spoilt: it covers them all, and each of the others has its own header, with
// the right header.size and a data_size nobody set.
func compressed2Parts(raw []byte, big bool) [][]byte {
	const maxPart = maxRecordSize - 16 // max_record_size there
	dataSize := load64(raw[8:], big)
	body := raw[16 : 16+dataSize]
	if dataSize <= maxPart {
		return [][]byte{body}
	}
	for at := maxPart; at > 0; at-- {
		if parts := chain(body, at, big); parts != nil {
			return parts
		}
	}
	return [][]byte{body}
}

// chain cuts body at `at` and then record by record, nil unless the records
// fit exactly.
func chain(body []byte, at int, big bool) [][]byte {
	parts := [][]byte{body[:at]}
	for rest := body[at:]; len(rest) > 0; {
		if len(rest) < 16 {
			return nil
		}
		h := parseHeader(rest, big)
		if h.typ != TypeCompressed2 || h.misc != 0 || h.size <= 16 || h.size > len(rest) {
			return nil
		}
		parts = append(parts, rest[16:h.size])
		rest = rest[h.size:]
	}
	return parts
}
