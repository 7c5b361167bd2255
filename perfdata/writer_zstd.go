package perfdata

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// zstdChunk is how many bytes of records go into one COMPRESSED record. The
// compressor is flushed after each, and what it makes of incompressible bytes
// must fit into the record: perf 6.1 gives up on a COMPRESSED record that
// yields no output (perf_session__process_compressed_event in
// tools/perf/util/session.c), so a flush cannot be spread over two.
const zstdChunk = 60_000

// zstdMmapLen is Compressed.MmapLen: the buffer perf unpacks one COMPRESSED
// record into, in whole pages.
const zstdMmapLen = 1 << 16

// zstdPacker makes COMPRESSED records. All of them together hold one zstd
// frame, which is never closed, like that of perf record -z.
type zstdPacker struct {
	enc           *zstd.Encoder
	out           bytes.Buffer
	level         int
	plain, packed int64 // bytes so far
}

func newZstdPacker(level int) (*zstdPacker, error) {
	if level < 1 || level > 22 {
		return nil, fmt.Errorf("perfdata: zstd level %d is not between 1 and 22", level)
	}
	p := &zstdPacker{level: level}
	var err error
	p.enc, err = zstd.NewWriter(&p.out, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)),
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("perfdata: zstd: %w", err)
	}
	return p, nil
}

// pack passes the records in b on to emit as COMPRESSED records. A record may
// be cut in two by it; readers put the stream together first.
func (p *zstdPacker) pack(b []byte, emit func([]byte)) error {
	for len(b) > 0 {
		n := min(len(b), zstdChunk)
		p.out.Reset()
		p.out.Write(make([]byte, recordHeaderSize)) // filled in below
		if _, err := p.enc.Write(b[:n]); err != nil {
			return fmt.Errorf("perfdata: zstd: %w", err)
		}
		if err := p.enc.Flush(); err != nil {
			return fmt.Errorf("perfdata: zstd: %w", err)
		}
		rec := p.out.Bytes()
		if len(rec) > 0xffff {
			return fmt.Errorf("perfdata: zstd made %d bytes of %d, a COMPRESSED record holds at most 65527", len(rec)-recordHeaderSize, n)
		}
		le.PutUint64(rec, uint64(TypeCompressed)|uint64(len(rec))<<48)
		p.plain += int64(n)
		p.packed += int64(len(rec) - recordHeaderSize)
		emit(rec)
		b = b[n:]
	}
	return nil
}

// describe is the body of the COMPRESSED feature (write_compressed in
// tools/perf/util/header.c): version, type 1 (zstd), level, ratio so far
// rounded, size of the unpacking buffer.
func (p *zstdPacker) describe() []byte {
	var ratio uint32
	if p.packed > 0 {
		ratio = uint32((p.plain + p.packed/2) / p.packed)
	}
	var b []byte
	for _, v := range []uint32{1, 1, uint32(p.level), ratio, zstdMmapLen} {
		b = le.AppendUint32(b, v)
	}
	return b
}
