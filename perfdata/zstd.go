package perfdata

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow is the largest window perf can ask for: level 22 (windowLog 27).
const maxZstdWindow = 128 << 20

// zstdPuller is the compressed side of a decoder: the payloads of the
// COMPRESSED records, which form a single zstd stream. perf flushes the
// stream at the end of each record, so when the decoder asks for more, all
// that was decoded so far has been framed, and records between COMPRESSED ones
// (FINISHED_ROUND) are met at their right place.
type zstdPuller struct {
	more  func() ([][]byte, error) // payloads of the next COMPRESSED record
	parts [][]byte
}

func (z *zstdPuller) Read(p []byte) (int, error) {
	for len(z.parts) == 0 || len(z.parts[0]) == 0 {
		if len(z.parts) > 1 {
			z.parts = z.parts[1:]
			continue
		}
		parts, err := z.more()
		if err != nil {
			return 0, err
		}
		z.parts = parts
	}
	n := copy(p, z.parts[0])
	z.parts[0] = z.parts[0][n:]
	return n, nil
}

// newZstd decodes on the calling goroutine, without reading ahead.
func newZstd(src io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxZstdWindow))
}

// inflate reads the compressed stream that begins with the given record of
// the outer stream, up to the end of the outer stream. perf never closes the
// zstd frame, so an unexpected end is the regular one.
func (p *pump) inflate(outer *framer, h rawHeader, raw []byte) error {
	start := outer.offset()
	z := &zstdPuller{parts: p.payload(h, raw)}
	p.framed[h.typ]++
	outer.take(h.size)
	var stop error
	z.more = func() ([][]byte, error) {
		for {
			h, raw, ok, err := p.outerNext(outer)
			if err != nil {
				stop = err
				return nil, err
			}
			if !ok {
				return nil, io.EOF
			}
			if h.typ != TypeCompressed && h.typ != TypeCompressed2 {
				if err := p.record(outer, h, raw); err != nil {
					stop = err
					return nil, err
				}
				continue
			}
			start = outer.offset()
			p.framed[h.typ]++
			parts := p.payload(h, raw)
			outer.take(h.size)
			return parts, nil
		}
	}
	dec, err := newZstd(z)
	if err != nil {
		return err
	}
	defer dec.Close()
	inner := newFramer(dec, p.pool, 0, -1, p.big)
	err = p.records(inner, nil)
	inner.cur.open = false
	if stop != nil {
		return stop
	}
	if err != nil {
		return err
	}
	if e := inner.err; e != nil && !errors.Is(e, io.EOF) && !errors.Is(e, io.ErrUnexpectedEOF) {
		p.damage(start, fmt.Sprintf("compressed data is corrupt: %v", e), outer.unread())
	} else if n := inner.lim - inner.pos; n > 0 && p.hurt == nil {
		p.damage(inner.offset(), fmt.Sprintf("compressed data ends %d bytes into a record", n), int64(n))
	}
	return nil
}

func (p *pump) payload(h rawHeader, raw []byte) [][]byte {
	if h.typ == TypeCompressed2 {
		return compressed2Parts(raw, p.big)
	}
	return [][]byte{raw[headerSize:]}
}
