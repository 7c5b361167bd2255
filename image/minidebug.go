package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// Limits on .gnu_debugdata. Distributions put a few percent of the program
// into it; xz makes symbol tables some five times smaller.
const (
	maxMiniDebug     = 256 << 20 // decompressed
	maxMiniExpansion = 64        // of it over what is compressed, above a small size
	smallMiniDebug   = 1 << 20
	maxDictionary    = 64 << 20 // that of xz -9
)

// addMiniDebug adds the functions of .gnu_debugdata, an ELF file compressed
// with xz that has the symbols .dynsym lacks (GDB manual, "MiniDebugInfo").
func (e *elfFile) addMiniDebug(b *symtabBuilder, place func(uint64) (uint64, bool)) error {
	packed, err := e.section(".gnu_debugdata")
	if err != nil {
		return err
	}
	content, err := unxz(packed)
	if err != nil {
		return fmt.Errorf("%s: .gnu_debugdata: %w", e.path, err)
	}
	inner, err := newELF(e.path+": .gnu_debugdata", bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return err
	}
	return inner.addSymbols(b, symtabSection, place)
}

var (
	errTooLarge = errors.New("unpacks to more than a program has")
	errNoXZ     = errors.New("not a stream of xz")
)

// unxz decompresses the blocks of a stream (The .xz File Format, version
// 1.2.1). Package xz would do it, but allocates what dictionary a block
// claims, up to 4 GiB, before it reads the first byte.
func unxz(packed []byte) (content []byte, err error) {
	const streamHeader = 12
	if len(packed) < streamHeader || string(packed[:6]) != "\xfd7zXZ\x00" {
		return nil, errNoXZ
	}
	limit := min(maxMiniDebug, max(smallMiniDebug, maxMiniExpansion*len(packed)))
	r := bytes.NewReader(packed[streamHeader:])
	err = contain("xz", func() error {
		for {
			more, err := unxzBlock(r, packed[7]&0x0f, &content, limit)
			if err == nil && !more && len(content) == 0 {
				err = errNoXZ
			}
			if err != nil || !more {
				return err
			}
		}
	})
	return content, err
}

// unxzBlock appends the content of the next block; more is false if the index
// comes instead. check is the kind of checksum behind a block.
func unxzBlock(r *bytes.Reader, check byte, content *[]byte, limit int) (more bool, err error) {
	size, err := r.ReadByte()
	if err != nil || size == 0 {
		return false, err
	}
	header := make([]byte, int(size)*4+3) // with its CRC, which is left to the content's
	if _, err := io.ReadFull(r, header); err != nil {
		return false, err
	}
	dict, err := dictionary(header)
	if err != nil {
		return false, err
	}
	before := r.Len()
	z, err := lzma.Reader2Config{DictCap: max(lzma.MinDictCap, min(dict, limit))}.NewReader2(r)
	if err != nil {
		return false, err
	}
	b, err := io.ReadAll(io.LimitReader(z, int64(limit-len(*content)+1)))
	if err != nil {
		return false, err
	}
	if len(b) > limit-len(*content) {
		return false, errTooLarge
	}
	*content = append(*content, b...)
	// The size of the header is a multiple of 4 too.
	padding := -(before - r.Len()) & 3
	if _, err := r.Seek(int64(padding), io.SeekCurrent); err != nil {
		return false, err
	}
	return true, verify(r, check, b)
}

// dictionary finds the size of the dictionary in a block header without its
// first byte: only the filter LZMA2 alone, which is what compresses debug
// data.
func dictionary(header []byte) (int, error) {
	const hasPacked, hasUnpacked, filters, lzma2 = 0x40, 0x80, 0x03, 0x21
	flags, rest := header[0], header[1:]
	for _, has := range []byte{hasPacked, hasUnpacked} {
		if flags&has != 0 {
			rest = skipLEB(rest, 1)
		}
	}
	if flags&filters != 0 || len(rest) < 3 || rest[0] != lzma2 || rest[1] != 1 {
		return 0, errors.New("block with other filters than LZMA2")
	}
	size, err := lzma.DecodeDictCap(rest[2])
	if err != nil {
		return 0, err
	}
	if size > maxDictionary {
		return 0, fmt.Errorf("dictionary of %d bytes", size)
	}
	return int(size), nil
}

// verify reads the checksum of a block.
func verify(r *bytes.Reader, check byte, b []byte) error {
	const none, sum32, sum64, sha = 0, 1, 4, 10
	size := map[byte]int{none: 0, sum32: 4, sum64: 8, sha: 32}
	n, ok := size[check]
	sum := make([]byte, n)
	if _, err := io.ReadFull(r, sum); err != nil || !ok {
		return errNoXZ
	}
	switch {
	case check == sum32 && crc32.ChecksumIEEE(b) != binary.LittleEndian.Uint32(sum),
		check == sum64 && crc64.Checksum(b, crc64.MakeTable(crc64.ECMA)) != binary.LittleEndian.Uint64(sum):
		return errors.New("content does not have the checksum behind it")
	}
	return nil
}
