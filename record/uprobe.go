package record

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Uprobe is a place in a file whose executions are counted by a uprobe
// (PMU "uprobe"; kernel/events/core.c, perf_uprobe_event_init).
type Uprobe struct {
	Path   string
	Offset uint64 // in the file
	Symbol string
}

// maxProbes bounds what a pattern may match: opening one costs 5-35 ms, and
// every hit 2-5 us.
const maxProbes = 64

// FindProbes finds the functions named by spec in a program: "FUNC",
// "FILE:FUNC", "FUNC+0x10"; FUNC may have * and ? as in a shell. Without FILE
// it is program.
func FindProbes(spec, program string) ([]Uprobe, error) {
	file, name := program, spec
	if i := strings.LastIndexByte(spec, ':'); i >= 0 && !strings.HasSuffix(spec[:i], ":") {
		file, name = spec[:i], spec[i+1:]
	}
	if file == "" {
		return nil, fmt.Errorf("count calls of %q: in which file? Write FILE:%s", spec, spec)
	}
	plus := uint64(0)
	if head, off, ok := strings.Cut(name, "+"); ok {
		n, err := strconv.ParseUint(off, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("count calls of %q: %q is no offset", spec, off)
		}
		name, plus = head, n
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	probes, err := elfProbes(path, name)
	if err != nil {
		return nil, fmt.Errorf("count calls of %q: %w", spec, err)
	}
	for i := range probes {
		probes[i].Offset += plus
	}
	return probes, nil
}

// elfProbes looks a pattern up in the symbol tables of a file.
func elfProbes(path, pattern string) (probes []Uprobe, err error) {
	defer func() { // debug/elf is not hardened against damaged files
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: damaged ELF file", path)
		}
	}()
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	syms, err1 := f.Symbols()
	dyn, err2 := f.DynamicSymbols()
	if len(syms)+len(dyn) == 0 {
		if errors.Is(err1, elf.ErrNoSymbols) && errors.Is(err2, elf.ErrNoSymbols) {
			return nil, fmt.Errorf("%s has no symbols (stripped)", path)
		}
		return nil, errors.Join(err1, err2)
	}
	found := map[uint64]string{}
	for _, s := range append(syms, dyn...) {
		t := elf.ST_TYPE(s.Info)
		if t != elf.STT_FUNC && t != elf.STT_LOOS || s.Section == elf.SHN_UNDEF || s.Value == 0 {
			continue
		}
		name, _, _ := strings.Cut(s.Name, "@")
		if ok, err := filepath.Match(pattern, name); err != nil {
			return nil, err
		} else if !ok && name != pattern {
			continue
		}
		off, ok := fileOffset(f, s.Value)
		if !ok {
			continue
		}
		if have, twice := found[off]; !twice || name < have {
			found[off] = name
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no function %q in %s (nm %s lists them; inlined functions have no calls to count)", pattern, path, filepath.Base(path))
	}
	if len(found) > maxProbes {
		return nil, fmt.Errorf("%d functions match, the limit is %d", len(found), maxProbes)
	}
	for _, off := range slices.Sorted(maps.Keys(found)) {
		probes = append(probes, Uprobe{path, off, found[off]})
	}
	slices.SortStableFunc(probes, func(a, b Uprobe) int { return cmp.Compare(a.Symbol, b.Symbol) })
	return probes, nil
}

func fileOffset(f *elf.File, vaddr uint64) (uint64, bool) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && vaddr >= p.Vaddr && vaddr-p.Vaddr < p.Filesz {
			return vaddr - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
