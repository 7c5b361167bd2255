package unwind

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readelf interprets call frame information independently of us: its tables
// are what ours must equal. The default test takes some addresses of some
// files; PERFCORRECT_LONG=1 takes 10,000 of every ELF file of the system.

func longTests() bool { return os.Getenv("PERFCORRECT_LONG") != "" }

// elfSections reads what NewTable wants from an ELF file, as package image does.
func elfSections(t testing.TB, path string) (s Sections, ok bool) {
	f, err := elf.Open(path)
	if err != nil {
		return s, false
	}
	defer f.Close()
	s.BigEndian = f.ByteOrder.String() == "BigEndian"
	s.AddrSize = 8
	if f.Class == elf.ELFCLASS32 {
		s.AddrSize = 4
	}
	get := func(name string) Section {
		sec := f.Section(name)
		if sec == nil || sec.Type == elf.SHT_NOBITS {
			return Section{}
		}
		data, err := sec.Data()
		if err != nil {
			t.Logf("%s: %s: %v", path, name, err)
		}
		return Section{Name: name, Data: data, Addr: sec.Addr}
	}
	s.EhFrameHdr, s.EhFrame, s.DebugFrame = get(".eh_frame_hdr"), get(".eh_frame"), get(".debug_frame")
	s.Go = f.Section(".note.go.buildid") != nil
	if x := f.Section(".text"); x != nil {
		s.TextBase = x.Addr
	}
	if x := f.Section(".got"); x != nil {
		s.DataBase = x.Addr
	}
	return s, f.Type == elf.ET_EXEC || f.Type == elf.ET_DYN
}

// interpFDE is one FDE as readelf interprets it.
type interpFDE struct {
	start, end uint64
	cols       []string
	rows       [][]string // the first element is the address
}

// registerName is what readelf adds to a register's number: "r1 (rdx)".
var registerName = regexp.MustCompile(` \(\w+\)`)

// readelfRows runs readelf and returns the FDEs of .eh_frame or .debug_frame.
func readelfRows(t testing.TB, path, section string) []interpFDE {
	cmd := exec.Command("readelf", "--wide", "--debug-dump=frames-interp", path)
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("readelf %s: %v", path, err)
	}
	var fdes []interpFDE
	cies := map[string]interpFDE{}
	var cur *interpFDE
	ours := false
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(nil, 1<<20)
	var cie interpFDE
	cieOff := ""
	flush := func() {
		if cieOff != "" {
			cies[cieOff] = cie
		}
		cieOff, cur = "", nil
	}
	for sc.Scan() {
		line := sc.Text()
		w := strings.Fields(registerName.ReplaceAllString(line, ""))
		switch {
		case strings.HasPrefix(line, "Contents of the "):
			flush()
			ours = strings.Contains(line, " "+section+" ")
		case !ours:
		case len(w) > 3 && w[3] == "CIE":
			flush()
			cieOff, cie = w[0], interpFDE{}
			cur = &cie
		case len(w) > 5 && w[3] == "FDE":
			flush()
			f := interpFDE{cols: cies[strings.TrimPrefix(w[4], "cie=")].cols}
			from, to, _ := strings.Cut(strings.TrimPrefix(w[len(w)-1], "pc="), "..")
			f.start, _ = strconv.ParseUint(from, 16, 64)
			f.end, _ = strconv.ParseUint(to, 16, 64)
			for _, r := range cies[strings.TrimPrefix(w[4], "cie=")].rows {
				f.rows = append(f.rows, append([]string{from}, r[1:]...))
			}
			fdes = append(fdes, f)
			cur = &fdes[len(fdes)-1]
		case len(w) > 1 && w[0] == "LOC" && cur != nil:
			cur.cols, cur.rows = w[1:], nil
		case cur != nil && len(w) == len(cur.cols)+1 && w[1] != "ZERO":
			cur.rows = append(cur.rows, w)
		}
	}
	flush()
	return fdes
}

// at returns the row at pc as Row.String would write it, registers sorted.
func (f *interpFDE) at(pc uint64, names map[string]int) (string, error) {
	var row []string
	for _, r := range f.rows {
		if loc, _ := strconv.ParseUint(r[0], 16, 64); loc <= pc {
			row = r
		}
	}
	if row == nil {
		return "", fmt.Errorf("no row")
	}
	var regs []string
	cfa, ra := "", "u"
	for i, col := range f.cols {
		v := row[i+1]
		switch n, known := names[col]; {
		case col == "CFA":
			cfa = v
			if name, off, ok := strings.Cut(v, "+"); ok {
				cfa = fmt.Sprintf("r%d+%s", names[name], off)
			} else if name, off, ok := strings.Cut(v, "-"); ok {
				cfa = fmt.Sprintf("r%d-%s", names[name], off)
			}
		case col == "ra":
			ra = v
		case v == "u" || !known:
		default:
			regs = append(regs, fmt.Sprintf("r%d:%s", n, v))
		}
	}
	slices.Sort(regs)
	return strings.Join(append(append([]string{cfa}, regs...), "ra:"+ra), " "), nil
}

// sortedString is Row.String as at writes it: without registers that are lost
// and those from number n on, which at has no names for.
func sortedString(r *Row, n int) string {
	w := strings.Fields(r.String())
	regs := slices.DeleteFunc(w[1:len(w)-1], func(s string) bool {
		num, rule, _ := strings.Cut(s[1:], ":")
		i, _ := strconv.Atoi(num)
		return rule == "u" || i >= n
	})
	slices.Sort(regs)
	return strings.Join(append(append([]string{w[0]}, regs...), w[len(w)-1]), " ")
}

func regNames(m elf.Machine) map[string]int {
	names := map[string]int{}
	add := func(list string) {
		for i, n := range strings.Fields(list) {
			names[n] = i
		}
	}
	switch m {
	case elf.EM_X86_64:
		add("rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip")
	case elf.EM_386:
		add("eax ecx edx ebx esp ebp esi edi eip")
	case elf.EM_AARCH64:
		for i := range 31 {
			names[fmt.Sprintf("x%d", i)] = i
		}
		names["sp"] = 31
	}
	return names
}

// compareWithReadelf checks n random addresses of path and returns how many
// addresses were compared.
func compareWithReadelf(t *testing.T, path string, n int, rnd *rand.Rand) int {
	all, ok := elfSections(t, path)
	if !ok {
		return 0
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	names := regNames(f.Machine)
	f.Close()
	compared := 0
	one := func(s Sections, section string) {
		fdes := readelfRows(t, path, section)
		fdes = slices.DeleteFunc(fdes, func(f interpFDE) bool { return f.end <= f.start || f.start == 0 || len(f.rows) == 0 })
		if len(fdes) == 0 {
			return
		}
		slices.SortFunc(fdes, func(a, b interpFDE) int { return int(a.start>>1) - int(b.start>>1) })
		tab := NewTable(s)
		bad := 0
		for range n {
			i := rnd.Intn(len(fdes))
			f := &fdes[i]
			if i+1 < len(fdes) && fdes[i+1].start < f.end || i > 0 && fdes[i-1].end > f.start {
				continue // two entries claim the address
			}
			pc := f.start + uint64(rnd.Int63n(int64(f.end-f.start)))
			want, err := f.at(pc, names)
			if err != nil {
				t.Errorf("%s: %#x: %v", path, pc, err)
				continue
			}
			compared++
			row, _ := tab.Row(pc)
			got := "none"
			if row != nil {
				got = sortedString(row, len(names))
			}
			if got != want {
				if bad++; bad < 5 {
					t.Errorf("%s %s: %#x: got %q, readelf says %q (%v)", path, section, pc, got, want, tab.Stats().FirstError)
				}
			}
		}
		if bad > 0 {
			t.Errorf("%s %s: %d of %d rows differ", path, section, bad, n)
		}
	}
	if len(all.EhFrame.Data) > 0 {
		s := all
		s.DebugFrame = Section{}
		one(s, ".eh_frame")
		s.EhFrameHdr = Section{} // the index we make ourselves
		one(s, ".eh_frame")
	}
	if len(all.DebugFrame.Data) > 0 {
		s := all
		s.EhFrame, s.EhFrameHdr = Section{}, Section{}
		one(s, ".debug_frame")
	}
	return compared
}

func TestRowsEqualReadelf(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	files := []string{"/bin/bash", "/usr/bin/perf", "/lib64/ld-linux-x86-64.so.2", "/usr/bin/readelf", cgoProgram(t)}
	for _, lib := range []string{"libc.so.6", "libstdc++.so.6", "libm.so.6"} {
		m, _ := filepath.Glob("/usr/lib/*-linux-gnu/" + lib)
		files = append(files, m...)
	}
	files = append(files, goProgram(t, "arm64"), i386Library(t))
	total := 0
	for _, path := range files {
		n := compareWithReadelf(t, path, 500, rnd)
		if n == 0 {
			t.Errorf("%s: nothing compared", path)
		}
		total += n
	}
	t.Logf("%d rows compared", total)
}

// cgoProgram builds a small Go program with C in it: .eh_frame for the one
// and compressed .debug_frame for both.
func cgoProgram(t testing.TB) string {
	dir := t.TempDir()
	src := "package main\n/*\nstatic int twice(int x) { return 2*x; }\n*/\nimport \"C\"\nfunc main() { println(C.twice(21)) }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "prog")
	cmd := exec.Command("go", "build", "-o", out, "main.go")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	return out
}

// goProgram builds a Go program for another machine: .debug_frame only.
func goProgram(t testing.TB, goarch string) string {
	dir := t.TempDir()
	src := "package main\nfunc main() { println(42) }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "prog-"+goarch)
	cmd := exec.Command("go", "build", "-o", out, "main.go")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux", "GOARCH="+goarch)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	return out
}

// i386Library compiles 32-bit C, which needs no 32-bit libc.
func i386Library(t testing.TB) string {
	dir := t.TempDir()
	src := filepath.Join(dir, "a.c")
	if err := os.WriteFile(src, []byte("int g(int*, int); int f(int n) { int a[4] = {n}; return n < 2 ? g(a, n) : f(n-1) + g(a, 2) * f(n-2); }"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "lib32.so")
	cmd := exec.Command("gcc", "-m32", "-O2", "-shared", "-fPIC", "-nostdlib", "-o", out, src)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc -m32: %v\n%s", err, msg)
	}
	return out
}

// systemELFs are the files the long tests read.
func systemELFs(t *testing.T) []string {
	var files []string
	seen := map[string]bool{}
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec"} {
		filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			f, err := os.Open(path)
			if err != nil {
				return nil
			}
			defer f.Close()
			var magic [4]byte
			f.Read(magic[:])
			if string(magic[:]) == elf.ELFMAG && !seen[path] {
				seen[path] = true
				files = append(files, path)
			}
			return nil
		})
	}
	return files
}

func TestRowsEqualReadelfEverywhere(t *testing.T) {
	if !longTests() {
		t.Skip("takes minutes: set PERFCORRECT_LONG=1")
	}
	rnd := rand.New(rand.NewSource(2))
	total, files := 0, 0
	for _, path := range systemELFs(t) {
		if n := compareWithReadelf(t, path, 5000, rnd); n > 0 {
			total += n
			files++
		}
	}
	t.Logf("%d rows of %d files compared", total, files)
}

// TestEverythingParses reads every entry and every row of every ELF file.
func TestEverythingParses(t *testing.T) {
	files := []string{"/bin/bash", "/usr/bin/perf"}
	if longTests() {
		files = systemELFs(t)
	}
	entries, notListed := 0, 0
	for _, path := range files {
		s, ok := elfSections(t, path)
		if !ok {
			continue
		}
		tab := NewTable(s)
		listed := tab.hdr.n
		if listed == 0 && len(s.EhFrameHdr.Data) > 0 && len(s.EhFrame.Data) > 8 {
			t.Logf("%s: search table not used", path)
		}
		for _, sec := range []*frameSection{&tab.eh, &tab.debug} {
			for f, err := range tab.entries(sec) {
				if err != nil {
					t.Errorf("%s: %v", path, err)
					continue
				}
				entries++
				if _, _, _, err := tab.state(&f, 1<<64-2); err != nil {
					t.Errorf("%s: %v", path, err)
				}
				if listed == 0 || !sec.eh || f.start == f.end {
					continue
				}
				if _, ok, err := tab.hdr.find(tab, f.start); !ok || err != nil {
					notListed++
					t.Logf("%s: FDE of %#x not found by the search table: %v", path, f.start, err)
				}
			}
		}
	}
	t.Logf("%d files, %d entries, %d not listed", len(files), entries, notListed)
}
