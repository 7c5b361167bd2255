package formats

import (
	"bufio"
	"encoding/binary"
	"io"
)

// proto writes protocol buffer messages (protobuf.dev/programming-guides/encoding).
// Fields of the outermost message go to w one by one; nested messages are
// built in a buffer, for their length goes before them. Fields that are zero
// are left out, as proto3 does.
type proto struct {
	w   *bufio.Writer
	err error
}

func newProto(w io.Writer) *proto { return &proto{w: bufio.NewWriterSize(w, 1<<16)} }

// message writes field number of the outermost message, with an encoded
// message or a string as its content.
func (p *proto) message(number int, body []byte) {
	var head [2 * binary.MaxVarintLen64]byte
	b := binary.AppendUvarint(head[:0], uint64(number)<<3|wireBytes)
	b = binary.AppendUvarint(b, uint64(len(body)))
	p.write(b)
	p.write(body)
}

func (p *proto) write(b []byte) {
	if _, err := p.w.Write(b); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *proto) flush() error {
	if err := p.w.Flush(); p.err == nil {
		p.err = err
	}
	return p.err
}

// Wire types.
const (
	wireVarint = 0
	wireBytes  = 2
)

// appendField appends a number.
func appendField(b []byte, number int, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(number)<<3|wireVarint)
	return binary.AppendUvarint(b, v)
}

func appendBool(b []byte, number int, v bool) []byte {
	if v {
		return appendField(b, number, 1)
	}
	return b
}

// appendBytes appends a nested message, a string or a packed list.
func appendBytes(b []byte, number int, body []byte) []byte {
	b = binary.AppendUvarint(b, uint64(number)<<3|wireBytes)
	b = binary.AppendUvarint(b, uint64(len(body)))
	return append(b, body...)
}
