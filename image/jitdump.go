package image

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
)

// jitCode is what a jitdump file says of the code of a process.
type jitCode struct {
	symbols *symtab
	lines   map[uint64][]jitLine // by start of function
}

// jitLine says that code from addr on, to the next one's, is of a line.
type jitLine struct {
	addr uint64
	position
}

const (
	jitMagic     = 0x4a695444 // "JiTD"
	jitHeader    = 40
	maxJITRecord = 1 << 30
	maxJITName   = 64 << 10

	jitLoad, jitMove, jitDebug = 0, 1, 2
)

// jitDump reads the dump of a process's JIT (perf record -k CLOCK_MONOTONIC
// with a JVMTI agent, node --perf-prof, LLVM's listener), where agents write
// it; nil if there is none. perf inject --jit turns it into files of which
// each has its mapping and so its time; without, what was loaded last at an
// address is what its name is.
func (s *Store) jitDump(im *Image) *jitCode {
	for _, path := range s.jitDumps(im.PID) {
		f, st, err := openRegular(path)
		if err != nil {
			continue
		}
		code, err := readJITDump(f, st.Size())
		f.Close()
		if err != nil {
			im.problems = append(im.problems, Problem{Image: im, Path: path, Kind: Damaged, What: err.Error()})
		}
		if code != nil {
			return code
		}
	}
	return nil
}

// jitDumps are the places of a dump: the directory of the process, which may
// be ours, /tmp, and ~/.debug/jit of agents that follow perf's
// (tools/perf/jvmti/jvmti_agent.c, create_jit_cache_dir).
func (s *Store) jitDumps(pid int32) []string {
	name := fmt.Sprintf("jit-%d.dump", pid)
	paths := []string{filepath.Join(s.opt.Symfs, "/tmp", name), name}
	home, _ := os.UserHomeDir()
	for _, dir := range []string{os.Getenv("JITDUMPDIR"), home} {
		if dir != "" {
			more, _ := filepath.Glob(filepath.Join(dir, ".debug/jit/*", name))
			paths = append(paths, more...)
		}
	}
	return paths
}

// jitReader reads the records of a dump (tools/perf/Documentation/jitdump-specification.txt).
type jitReader struct {
	r       *bufio.Reader
	left    int64
	order   binary.ByteOrder
	entries []symbol
	lines   map[uint64][]jitLine
	pending map[uint64][]jitLine // lines come before their code
}

// readJITDump reads a dump of size bytes. After damage, which the end of a
// process that was killed is, what was read stands.
func readJITDump(f io.Reader, size int64) (*jitCode, error) {
	d := jitReader{r: bufio.NewReaderSize(f, maxJITName), left: size,
		lines: map[uint64][]jitLine{}, pending: map[uint64][]jitLine{}}
	head, err := d.next(jitHeader)
	if err != nil {
		return nil, errors.New("no header of a jitdump file")
	}
	switch {
	case binary.LittleEndian.Uint32(head) == jitMagic:
		d.order = binary.LittleEndian
	case binary.BigEndian.Uint32(head) == jitMagic:
		d.order = binary.BigEndian
	default:
		return nil, fmt.Errorf("magic number %#x is not that of a jitdump file", head[:4])
	}
	if total := d.order.Uint32(head[8:]); total > jitHeader {
		err = d.skip(int64(total) - jitHeader)
	}
	for err == nil && d.left > 0 {
		err = d.record()
	}
	return &jitCode{latest(d.entries), d.lines}, err
}

// next returns the next n bytes, which are valid until the one after.
func (d *jitReader) next(n int) ([]byte, error) {
	if int64(n) > d.left {
		return nil, fmt.Errorf("%d bytes where %d are wanted", d.left, n)
	}
	b, err := d.r.Peek(n)
	if err != nil {
		return nil, err
	}
	d.left -= int64(n)
	_, err = d.r.Discard(n)
	return b, err
}

func (d *jitReader) skip(n int64) error {
	if n < 0 || n > d.left {
		return fmt.Errorf("%d bytes where %d are wanted", d.left, n)
	}
	d.left -= n
	_, err := io.CopyN(io.Discard, d.r, n)
	return err
}

func (d *jitReader) record() error {
	const prefix = 16
	b, err := d.next(prefix)
	if err != nil {
		return err
	}
	kind, total := d.order.Uint32(b), int64(d.order.Uint32(b[4:]))
	if total < prefix || total > maxJITRecord || total-prefix > d.left {
		return fmt.Errorf("record of %d bytes with %d left", total, d.left)
	}
	end := d.left - (total - prefix)
	switch kind {
	case jitLoad:
		err = d.load(end)
	case jitMove:
		err = d.move(end)
	case jitDebug:
		err = d.debug(end)
	}
	if err != nil {
		return err
	}
	return d.skip(d.left - end)
}

// words reads n 64-bit numbers after skip bytes of a record that ends where
// end bytes are left.
func (d *jitReader) words(skip, n int, end int64) ([]uint64, error) {
	if int64(skip+8*n) > d.left-end {
		return nil, fmt.Errorf("record too short by %d bytes", int64(skip+8*n)-(d.left-end))
	}
	b, err := d.next(skip + 8*n)
	if err != nil {
		return nil, err
	}
	w := make([]uint64, n)
	for i := range w {
		w[i] = d.order.Uint64(b[skip+8*i:])
	}
	return w, nil
}

func (d *jitReader) name(end int64) (string, error) {
	b, _ := d.r.Peek(int(min(maxJITName, d.left-end)))
	name := cString(b)
	if len(name) == len(b) {
		return "", errors.New("name without end")
	}
	_, err := d.next(len(name) + 1)
	return name, err
}

func (d *jitReader) load(end int64) error {
	w, err := d.words(8, 4, end) // vma, code_addr, code_size, code_index
	if err != nil {
		return err
	}
	name, err := d.name(end)
	if err != nil {
		return err
	}
	if start, size := w[1], w[2]; size > 0 && start+size > start {
		d.entries = append(d.entries, symbol{start: start, end: start + size, name: name})
		d.lines[start] = d.pending[start]
		delete(d.pending, start)
	}
	return nil
}

// move copies a function, with its lines, to where it is now.
func (d *jitReader) move(end int64) error {
	w, err := d.words(8, 5, end) // vma, old_code_addr, new_code_addr, code_size, code_index
	if err != nil {
		return err
	}
	from, to, size := w[1], w[2], w[3]
	if size == 0 || to+size <= to {
		return nil
	}
	for _, y := range slices.Backward(d.entries) {
		if y.start == from {
			d.entries = append(d.entries, symbol{start: to, end: to + size, name: y.name})
			moved := slices.Clone(d.lines[from])
			for i := range moved {
				moved[i].addr += to - from
			}
			d.lines[to] = moved
			break
		}
	}
	return nil
}

func (d *jitReader) debug(end int64) error {
	w, err := d.words(0, 2, end) // code_addr, nr_entry
	if err != nil {
		return err
	}
	var lines []jitLine
	file := ""
	const entry = 16 + 1 // at least: address, line, discriminator, name
	for n := w[1]; n > 0 && d.left-end >= entry; n-- {
		b, err := d.next(entry - 1)
		if err != nil {
			return err
		}
		l := jitLine{addr: d.order.Uint64(b)}
		l.line = int(d.order.Uint32(b[8:]) & 0x7fffffff)
		name, err := d.name(end)
		if err != nil {
			return err
		}
		if name != "\xff" { // as the one before
			file = name
		}
		l.file = file
		lines = append(lines, l)
	}
	slices.SortStableFunc(lines, func(a, b jitLine) int { return cmp.Compare(a.addr, b.addr) })
	d.pending[w[0]] = lines
	return nil
}

// position finds the line of an address in the function that begins at start.
func (c *jitCode) position(start, addr uint64) position {
	lines := c.lines[start]
	i := sort.Search(len(lines), func(i int) bool { return lines[i].addr > addr })
	if i == 0 {
		return position{}
	}
	return lines[i-1].position
}
