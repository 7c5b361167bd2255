package perfdata

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// fileHeaderOldSize is the size of struct perf_file_header without the feature
// bitmap, before Linux 2.6.32.
const (
	fileHeaderOldSize = 72
	featureBits       = fileFeatureBits
)

// section is struct perf_file_section.
type section struct{ off, size uint64 }

// fileHeader is struct perf_file_header.
type fileHeader struct {
	size       uint64
	attrSize   uint64
	attrs      section
	data       section
	eventTypes section
	features   []FeatureID
}

// magic looks at the first 16 bytes: byte order and header size, or an error
// that says what the file seems to be.
func parseMagic(b []byte, path string) (big bool, size uint64, err error) {
	fail := func(format string, args ...any) (bool, uint64, error) {
		return false, 0, &FormatError{path, 0, fmt.Sprintf(format, args...)}
	}
	switch {
	case len(b) == 0:
		return fail("the file is empty (was perf record stopped before it wrote anything?)")
	case bytes.HasPrefix(b, []byte("PERFFILE")) || bytes.HasPrefix(b, []byte("ELIFFREP")):
		return fail("perf.data of version 1 (PERFFILE), written by a perf older than Linux 2.6.34; record again with a newer perf")
	case bytes.HasPrefix(b, []byte("PERFILE2")):
		big = false
	case bytes.HasPrefix(b, []byte("2ELIFREP")):
		big = true
	default:
		return fail("not a perf.data file: %s", guess(b))
	}
	if len(b) < 16 {
		return fail("the file header is cut after %d bytes", len(b))
	}
	return big, load64(b[8:], big), nil
}

// guess says what a file that is not a perf.data may be, and what to do.
func guess(b []byte) string {
	for _, g := range []struct{ magic, what string }{
		{"\x1f\x8b", "it is gzip-compressed; decompress it first (gzip -dc FILE > perf.data)"},
		{"\x28\xb5\x2f\xfd", "it is zstd-compressed as a whole; decompress it first (zstd -dc FILE > perf.data)"},
		{"\xfd7zXZ", "it is xz-compressed; decompress it first (xz -dc FILE > perf.data)"},
		{"BZh", "it is bzip2-compressed; decompress it first (bzip2 -dc FILE > perf.data)"},
		{"PK\x03\x04", "it is a zip archive; extract the perf.data from it"},
		{"\x7fELF", "it is an ELF object (a program); the recording is the file perf record wrote, usually perf.data"},
		{"{", "it looks like JSON; give the recording itself, as perf record wrote it"},
	} {
		if bytes.HasPrefix(b, []byte(g.magic)) {
			return g.what
		}
	}
	for _, ch := range b {
		if ch >= 0x7f || ch < 0x20 && ch != '\n' && ch != '\t' && ch != '\r' {
			return fmt.Sprintf("it begins with % x, not with PERFILE2", b[:min(8, len(b))])
		}
	}
	return "it is text (output of perf script?); give the recording itself, as perf record wrote it"
}

// parseFileHeader reads the rest of the header in file mode.
func parseFileHeader(b []byte, big bool, path string) (*fileHeader, error) {
	c := &cursor{b: b, big: big}
	c.u64()
	h := &fileHeader{size: c.u64(), attrSize: c.u64()}
	for _, s := range []*section{&h.attrs, &h.data, &h.eventTypes} {
		*s = section{c.u64(), c.u64()}
	}
	switch {
	case h.size != fileHeaderSize && h.size != fileHeaderOldSize:
		return nil, &FormatError{path, 8, fmt.Sprintf("header size %d, expected %d", h.size, fileHeaderSize)}
	case c.bad:
		return nil, &FormatError{path, int64(len(b)), fmt.Sprintf("the file header is cut after %d bytes", len(b))}
	case h.size == fileHeaderOldSize:
		return h, nil
	}
	bitmap := c.take(featureBits / 8)
	if c.bad {
		return nil, &FormatError{path, int64(len(b)), fmt.Sprintf("the file header is cut after %d bytes", len(b))}
	}
	h.features = featureBitmap(bitmap, big)
	return h, nil
}

// featureBitmap reads adds_features, an array of unsigned long of the
// recording machine. A 32-bit big-endian machine is recognised by HOSTNAME,
// which perf always writes, standing at its place only if words of 32 bits
// are assumed (perf_file_header__read, tools/perf/util/header.c).
func featureBitmap(b []byte, big bool) []FeatureID {
	var words [featureBits / 64]uint64
	for i := range words {
		words[i] = load64(b[8*i:], big)
	}
	if big && words[0]>>FeatureHostname&1 == 0 {
		for i := range words {
			words[i] = bits.RotateLeft64(words[i], 32)
		}
	}
	var out []FeatureID
	for i := range featureBits {
		if words[i/64]>>(i%64)&1 != 0 {
			out = append(out, FeatureID(i))
		}
	}
	return out
}

// readAt reads a section, cut at the end of the file: nothing is allocated
// for bytes that are not there.
func readAt(r io.ReaderAt, fileSize int64, s section) ([]byte, bool) {
	n := min(s.size, uint64(max(0, fileSize-int64(min(s.off, uint64(fileSize))))))
	b := make([]byte, n)
	got, err := r.ReadAt(b, int64(min(s.off, uint64(fileSize))))
	if err != nil && err != io.EOF {
		return b[:got], false
	}
	return b[:got], uint64(got) == s.size
}

// byteOrder of the recording, for Meta.
func byteOrder(big bool) binary.ByteOrder {
	if big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}
