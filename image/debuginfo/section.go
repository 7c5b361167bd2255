package debuginfo

import (
	"bytes"
	"io"
)

// A Section is the content of a debug section: Data, or Size bytes that R
// reads. The zero Section is absent.
type Section struct {
	Data []byte
	R    io.ReaderAt
	Size uint64

	pages map[uint64][]byte
}

const (
	pageSize = 1 << 16
	maxPages = 64 // held of a section that stays in its file
)

func (s *Section) size() uint64 {
	if s.R == nil {
		return uint64(len(s.Data))
	}
	return s.Size
}

// from returns the bytes at an offset: at least want, or fewer to the end of
// the section. They may not be changed, and stay valid.
func (s *Section) from(off uint64, want int) []byte {
	size := s.size()
	if off >= size {
		return nil
	}
	if s.R == nil {
		return s.Data[off:]
	}
	want = int(min(uint64(want), size-off))
	at := off / pageSize * pageSize
	if int(off-at)+want > pageSize {
		return s.read(off, want)
	}
	p, ok := s.pages[at]
	if !ok {
		if len(s.pages) >= maxPages || s.pages == nil {
			s.pages = make(map[uint64][]byte)
		}
		p = s.read(at, int(min(pageSize, size-at)))
		s.pages[at] = p
	}
	return p[min(int(off-at), len(p)):]
}

func (s *Section) read(off uint64, n int) []byte {
	b := make([]byte, n)
	got, _ := s.R.ReadAt(b, int64(off))
	return b[:got]
}

// maxString bounds names and paths; more is no compiler's work.
const maxString = 64 << 10

// cstring returns the NUL-terminated string at an offset, "" if there is none.
func (s *Section) cstring(off uint64) string {
	for want := 256; ; want *= 4 {
		b := s.from(off, want)
		if i := bytes.IndexByte(b[:min(len(b), maxString)], 0); i >= 0 {
			return string(b[:i])
		}
		if len(b) < want || want >= maxString {
			return ""
		}
	}
}
