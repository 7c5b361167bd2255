package accuracy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
)

// A Reader reads profiles that are to be compared with one another, in any of
// the formats Compare understands.
type Reader struct {
	// FileOffset is asked where the code of a callgrind address lies. Nil
	// takes addresses for offsets, which holds only for made-up files.
	FileOffset FileOffset

	contexts contextTable
}

// ReadFile reads one profile: pprof as convert writes it (gzip or not), JSON
// lines as convert and the accuracy lab write them, or callgrind output.
func (r *Reader) ReadFile(name string) (*Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return r.Read(f, name)
}

// Read reads one profile; name is used in errors.
func (r *Reader) Read(in io.Reader, name string) (*Profile, error) {
	if r.contexts == nil {
		r.contexts = contextTable{}
	}
	if r.FileOffset == nil {
		r.FileOffset = func(_ string, vaddr uint64) (uint64, bool) { return vaddr, true }
	}
	b := bufio.NewReader(in)
	p := &Profile{Name: name}
	head, _ := b.Peek(64)
	var err error
	switch {
	case len(head) == 0:
		return nil, fmt.Errorf("%s: empty file", name)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}), head[0] < ' ' && head[0] != '\n':
		err = r.pprof(p, b)
	case head[0] == '{':
		err = r.jsonl(p, b)
	case bytes.HasPrefix(head, []byte("# callgrind")), bytes.HasPrefix(head, []byte("version: ")):
		err = r.callgrind(p, b)
	default:
		return nil, fmt.Errorf("%s: neither pprof nor JSON lines nor callgrind output; it begins with %.20q", name, head)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}
