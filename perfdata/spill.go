package perfdata

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// spillFile holds sorted runs that do not fit into memory. Each record is
// stored as time, seq, offset, length and its bytes. The file has no name:
// it is gone when the process ends, however it ends.
type spillFile struct {
	f     *os.File
	w     *bufio.Writer
	start int64 // of the run being written
	end   int64
	head  [spillHeader]byte
}

const spillHeader = 28

func newSpillFile() (*spillFile, error) {
	f, err := os.CreateTemp("", "perfcorrect-sort-*")
	if err != nil {
		return nil, fmt.Errorf("sorting needs a temporary file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return &spillFile{f: f, w: bufio.NewWriterSize(nil, 1<<18)}, nil
}

func (s *spillFile) begin() {
	s.start = s.end
	s.w.Reset(io.NewOffsetWriter(s.f, s.start))
}

func (s *spillFile) write(r *rawRec, data []byte) error {
	h := s.head[:]
	binary.LittleEndian.PutUint64(h[0:], r.time)
	binary.LittleEndian.PutUint64(h[8:], r.seq)
	binary.LittleEndian.PutUint64(h[16:], uint64(r.chunk.base+int64(r.pos)))
	binary.LittleEndian.PutUint32(h[24:], uint32(len(data)))
	if _, err := s.w.Write(h); err != nil {
		return s.wrap(err)
	}
	_, err := s.w.Write(data)
	s.end += spillHeader + int64(len(data))
	return s.wrap(err)
}

func (s *spillFile) finish() (*spillRun, error) {
	if err := s.w.Flush(); err != nil {
		return nil, s.wrap(err)
	}
	sec := io.NewSectionReader(s.f, s.start, s.end-s.start)
	return &spillRun{r: bufio.NewReaderSize(sec, 1<<18)}, nil
}

// rewind lets the space be used again once all runs have been read.
func (s *spillFile) rewind() error {
	if s.end == 0 {
		return nil
	}
	s.start, s.end = 0, 0
	return s.wrap(s.f.Truncate(0))
}

func (s *spillFile) close() { s.f.Close() }

func (s *spillFile) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("temporary file of the sort: %w", err)
}

// spillRun reads one run back.
type spillRun struct {
	r      *bufio.Reader
	data   []byte
	loaded bool
	head   [spillHeader]byte
	where  chunk // carries the offset of the record
}

func (s *spillRun) next(rec *rawRec) (bool, error) {
	h := s.head[:]
	if _, err := io.ReadFull(s.r, h); err != nil {
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, fmt.Errorf("temporary file of the sort: %w", err)
	}
	n := binary.LittleEndian.Uint32(h[24:])
	if cap(s.data) < int(n) {
		s.data = make([]byte, max(int(n), 4096))
	}
	s.data = s.data[:n]
	if _, err := io.ReadFull(s.r, s.data); err != nil {
		return false, fmt.Errorf("temporary file of the sort: %w", err)
	}
	s.where.base = int64(binary.LittleEndian.Uint64(h[16:]))
	*rec = rawRec{
		time:  binary.LittleEndian.Uint64(h[0:]),
		seq:   binary.LittleEndian.Uint64(h[8:]),
		chunk: &s.where,
		n:     n,
	}
	s.loaded = true
	return true, nil
}
