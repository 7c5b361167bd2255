package image

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

const maxMapLine = 64 << 10

// loadJIT names the code of a JIT: from its dump, which knows lines, or else
// from its map.
func (im *Image) loadJIT() {
	if im.jit = im.store.jitDump(im); im.jit != nil {
		im.symbols = im.jit.symbols
		return
	}
	im.symbols = im.store.perfMap(im.PID, im)
}

// perfMap returns the symbols of /tmp/perf-PID.map, read once. perf ignores a
// map of another user when run as root; we read it as we read everything, as
// hostile input, since all it can do is lie about names.
func (s *Store) perfMap(pid int32, im *Image) *symtab {
	if t, ok := s.perfMaps[pid]; ok {
		return t
	}
	path := filepath.Join(s.opt.Symfs, fmt.Sprintf("/tmp/perf-%d.map", pid))
	t, err := openPerfMap(path, im)
	s.perfMaps[pid] = t
	switch {
	case errors.Is(err, fs.ErrNotExist):
		im.problems = append(im.problems, Problem{Image: im, Path: path, Kind: Missing, What: "no such file",
			Hint: "let the JIT write it (node --perf-basic-prof, java -XX:+DumpPerfMapAtExit, python -X perf)"})
	case err != nil:
		im.problems = append(im.problems, Problem{Image: im, Path: path, Kind: Damaged, What: err.Error()})
	}
	return t
}

func openPerfMap(path string, im *Image) (*symtab, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, bad, err := readPerfMap(f)
	if bad > 0 {
		im.problems = append(im.problems, Problem{Image: im, Path: path, Kind: Damaged,
			What: fmt.Sprintf("%d malformed lines", bad)})
	}
	return t, err
}

// readPerfMap parses lines "start size name" (hexadecimal; the name is the
// rest of the line; tools/perf/Documentation/jit-interface.txt). JIT memory
// is reused: a later line replaces whatever it overlaps.
func readPerfMap(r io.Reader) (t *symtab, bad int, err error) {
	var entries []symbol
	br := bufio.NewReaderSize(r, maxMapLine)
	for {
		line, more, err := br.ReadLine()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return latest(entries), bad, err
		}
		long := more
		for more && err == nil {
			_, more, err = br.ReadLine()
		}
		y, ok := perfMapLine(string(line))
		if !ok || long {
			bad++
			continue
		}
		entries = append(entries, y)
	}
}

func perfMapLine(line string) (y symbol, ok bool) {
	start, rest, _ := strings.Cut(strings.TrimRight(line, "\r"), " ")
	size, name, _ := strings.Cut(rest, " ")
	at, ok1 := parseHex(start)
	n, ok2 := parseHex(size)
	if !ok1 || !ok2 || name == "" || at+n < at || n == 0 {
		return y, false
	}
	return symbol{start: at, end: at + n, name: name}, true
}

// latest builds a table in which, of entries that overlap, the later one
// stands and the earlier is gone.
func latest(entries []symbol) *symtab {
	type numbered struct {
		symbol
		n int
	}
	all := make([]numbered, len(entries))
	for i, y := range entries {
		all[i] = numbered{y, i}
	}
	slices.SortFunc(all, func(x, y numbered) int { return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.n, y.n)) })
	// Sweep by start: kept is free of overlaps, and a new entry either is
	// older than one it meets and goes, or removes those it meets.
	var kept []numbered
	for _, y := range all {
		older := false
		for n := len(kept); n > 0 && kept[n-1].end > y.start; n = len(kept) {
			if kept[n-1].n > y.n {
				older = true
				break
			}
			kept = kept[:n-1]
		}
		if !older {
			kept = append(kept, y)
		}
	}
	var b symtabBuilder
	for _, y := range kept {
		b.add(y.symbol)
	}
	return b.finish()
}
