package image

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// kallsyms is what /proc/kallsyms and its copies say: a symbol table of the
// kernel and one of each module, all with absolute addresses.
type kallsyms struct {
	path    string
	core    *symtab
	modules map[string]*symtab // "nf_tables"; also "bpf" and the like
	bad     int                // malformed lines
	zero    bool               // addresses hidden: all are 0
}

const maxKallsymsLine = 64 << 10

// readKallsyms parses lines "ffffffff81000000 T name [module]" (Linux
// kernel/kallsyms.c, s_show). Types T and W (t and w: local) are functions
// as for perf's symbol_type__filter; the rest only ends what is before it.
func readKallsyms(path string, r io.Reader) (*kallsyms, error) {
	k := &kallsyms{path: path, zero: true}
	tables := map[string]*symtabBuilder{}
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 4096), maxKallsymsLine)
	for sc.Scan() {
		y, module, ok := kallsymsLine(sc.Text())
		if !ok {
			k.bad++
			continue
		}
		if y.start != 0 {
			k.zero = false
		}
		t := tables[module]
		if t == nil {
			t = &symtabBuilder{}
			tables[module] = t
		}
		t.add(y)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if k.zero {
		return k, nil
	}
	k.modules = map[string]*symtab{}
	for name, t := range tables {
		if name == "" {
			k.core = t.finish()
		} else {
			k.modules[name] = t.finish()
		}
	}
	return k, nil
}

func kallsymsLine(line string) (y symbol, module string, ok bool) {
	address, rest, _ := strings.Cut(line, " ")
	typ, rest, _ := strings.Cut(rest, " ")
	name, module, _ := strings.Cut(rest, "\t")
	start, ok := parseHex(address)
	if !ok || len(typ) != 1 || name == "" {
		return y, "", false
	}
	y = symbol{start: start, name: name, typ: elf.STT_FUNC, bind: elf.STB_GLOBAL}
	switch typ[0] {
	case 'T':
	case 'W':
		y.bind = elf.STB_WEAK
	case 't', 'w':
		y.bind = elf.STB_LOCAL
	default:
		y.data = true
	}
	return y, strings.Trim(module, "[] "), true
}

// parseHex parses hexadecimal digits, with or without "0x"; strconv would
// allocate an error for each bad one.
func parseHex(s string) (v uint64, ok bool) {
	if len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' {
		s = s[2:]
	}
	if s == "" || len(s) > 16 {
		return 0, false
	}
	for i := range len(s) {
		d := s[i]
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(d)
	}
	return v, true
}

// kernelSymbols is the kallsyms of a Store, or why there is none.
type kernelSymbols struct {
	k       *kallsyms
	problem *Problem
}

// kernelSymbols finds a kallsyms file for the recorded kernel: the one given,
// perf's copy of the recorded build ID, or the running kernel's if its build
// ID is the recorded one (or none was recorded, on the same host).
func (s *Store) kernelSymbolsOf(im *Image, buildID string) *kernelSymbols {
	if s.kernel != nil {
		return s.kernel
	}
	s.kernel = &kernelSymbols{}
	paths := s.kallsymsPaths(buildID)
	for _, p := range paths {
		f, _, err := openRegular(p)
		if errors.Is(err, os.ErrNotExist) || isDir(p) {
			continue
		}
		var k *kallsyms
		if err == nil {
			k, err = readKallsyms(p, f)
			f.Close()
		}
		if err != nil {
			s.kernel.problem = &Problem{Image: im, Path: p, Kind: Damaged, What: err.Error()}
			continue
		}
		if k.zero {
			s.kernel.problem = &Problem{Image: im, Path: p, Kind: Restricted, What: "all addresses are 0",
				Hint: "run as root or with kernel.kptr_restrict=0"}
			continue
		}
		if r := s.kernelReference(); r.addr != 0 && !k.startsAt(r.addr) {
			s.kernel.problem = &Problem{Image: im, Path: p, Kind: Mismatch,
				What: fmt.Sprintf("no symbol at %#x, where the recorded kernel had %s: it is of another boot (KASLR)", r.addr, r.symbol),
				Hint: "give the kallsyms of that boot, or the kernel's vmlinux"}
			continue
		}
		s.kernel.k, s.kernel.problem = k, nil
		return s.kernel
	}
	if s.kernel.problem == nil {
		s.kernel.problem = &Problem{Image: im, Path: "kallsyms", Kind: Missing,
			What: "no kernel symbols for build ID " + orNone(buildID),
			Hint: "give the kernel's vmlinux or kallsyms"}
	}
	return s.kernel
}

// kernelReference is what the recording says of the place of the kernel.
func (s *Store) kernelReference() relocation {
	for _, im := range s.images {
		if im.Kind == Kernel && im.reloc.symbol != "" {
			return im.reloc
		}
	}
	return relocation{}
}

// startsAt reports whether some symbol of the kernel proper begins at addr.
// Of the aliases at one address the table keeps one, so names cannot be asked.
func (k *kallsyms) startsAt(addr uint64) bool {
	if k.core == nil {
		return false
	}
	i := k.core.find(addr)
	return i >= 0 && k.core.all[i].start == addr
}

const procKallsyms = "/proc/kallsyms"

func (s *Store) kallsymsPaths(buildID string) []string {
	if s.opt.Kallsyms != "" {
		return []string{s.opt.Kallsyms}
	}
	var paths []string
	running := runningKernel()
	if buildID == "" && s.opt.SameHost || buildID != "" && sameBuildID(running, buildID) {
		paths = append(paths, procKallsyms)
	}
	paths = append(paths, s.cached(buildID, "kallsyms")...)
	if buildID != "" && s.opt.BuildIDDir != "" {
		paths = append(paths, filepath.Join(s.opt.BuildIDDir, "[kernel.kallsyms]", filepath.Base(buildID), "kallsyms"))
	}
	return paths
}

// runningKernel is the build ID of the kernel we run on, "" if unknown.
func runningKernel() string {
	b, err := os.ReadFile("/sys/kernel/notes")
	if err != nil {
		return ""
	}
	return buildIDNote(b, hostOrder)
}
