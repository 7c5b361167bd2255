package unwind

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// The tests here record programs with perf, unwind the samples, and compare
// with perf script, which unwinds the same samples with libunwind.

// elfSource is a Source over debug/elf, for files that can be trusted.
type elfSource struct {
	sections Sections
	progs    []*elf.Prog
}

func (e *elfSource) UnwindSections() (Sections, error) { return e.sections, nil }

func (e *elfSource) ReadVaddr(p []byte, vaddr uint64) int {
	for _, ph := range e.progs {
		if ph.Type == elf.PT_LOAD && ph.Flags&elf.PF_W == 0 && vaddr >= ph.Vaddr && vaddr < ph.Vaddr+ph.Filesz {
			n, _ := ph.ReadAt(p, int64(vaddr-ph.Vaddr))
			return n
		}
	}
	return 0
}

func (e *elfSource) vaddr(off uint64) uint64 {
	for _, ph := range e.progs {
		if ph.Type == elf.PT_LOAD && off >= ph.Off && off < ph.Off+ph.Filesz {
			return off - ph.Off + ph.Vaddr
		}
	}
	return off
}

// testMap is one mapping; testSpace an AddressSpace made of the MMAP records
// of a process.
type testMap struct {
	start, end, pgoff uint64
	name              string
	exec              bool
	src               *elfSource
	mod               *Module
}

type testSpace struct{ maps []testMap }

func (s *testSpace) find(addr uint64) *testMap {
	i := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].end > addr })
	if i < len(s.maps) && s.maps[i].start <= addr {
		return &s.maps[i]
	}
	return nil
}

func (s *testSpace) Find(addr uint64) (*Module, uint64, bool) {
	m := s.find(addr)
	if m == nil || !m.exec {
		return nil, 0, false
	}
	if m.mod == nil {
		return nil, addr, true
	}
	return m.mod, m.src.vaddr(addr - m.start + m.pgoff), true
}

func (s *testSpace) insert(n testMap) {
	var maps []testMap
	for _, m := range s.maps {
		if m.start < n.start {
			l := m
			l.end = min(m.end, n.start)
			maps = append(maps, l)
		}
		if m.end > n.end {
			r := m
			r.start = max(m.start, n.end)
			r.pgoff += r.start - m.start
			maps = append(maps, r)
		}
	}
	maps = append(maps, n)
	sort.Slice(maps, func(i, j int) bool { return maps[i].start < maps[j].start })
	s.maps = maps
}

// world tracks the address spaces of a recording.
type world struct {
	tb     testing.TB
	spaces map[int32]*testSpace
	mods   map[string]*Module
	srcs   map[string]*elfSource
}

func newWorld(tb testing.TB) *world {
	return &world{tb, map[int32]*testSpace{}, map[string]*Module{}, map[string]*elfSource{}}
}

func (w *world) space(pid int32) *testSpace {
	if w.spaces[pid] == nil {
		w.spaces[pid] = &testSpace{}
	}
	return w.spaces[pid]
}

func (w *world) module(name string) (*Module, *elfSource) {
	if m, ok := w.mods[name]; ok {
		return m, w.srcs[name]
	}
	path := name
	if name == "[vdso]" {
		path = ownVDSO(w.tb)
	}
	var src *elfSource
	var mod *Module
	if f, err := elf.Open(path); err == nil {
		src = &elfSource{progs: f.Progs}
		src.sections, _ = elfSections(w.tb, path)
		mod = NewModule(src)
	}
	w.mods[name], w.srcs[name] = mod, src
	return mod, src
}

func (w *world) record(rec perfdata.Record) {
	switch r := rec.(type) {
	case *perfdata.Mmap:
		m := testMap{start: r.Addr, end: r.Addr + r.Len, pgoff: r.Pgoff, name: r.Filename, exec: r.Misc&perfdata.MiscMmapData == 0}
		if r.Type == perfdata.TypeMmap2 {
			m.exec = r.Prot&4 != 0
		}
		if m.exec && m.name != "" && (m.name[0] == '/' && m.name[1] != '/' || m.name == "[vdso]") {
			m.mod, m.src = w.module(m.name)
		}
		w.space(r.MapPID).insert(m)
	case *perfdata.Task:
		if r.Type != perfdata.TypeFork || r.TaskPID == r.TaskPPID {
			return
		}
		w.spaces[r.TaskPID] = &testSpace{maps: append([]testMap(nil), w.space(r.TaskPPID).maps...)}
	case *perfdata.Comm:
		if r.Misc&perfdata.MiscCommExec != 0 {
			w.spaces[r.CommPID] = &testSpace{}
		}
	}
}

// ownVDSO copies the vdso of this process to a file.
func ownVDSO(tb testing.TB) string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		tb.Fatal(err)
	}
	for _, line := range strings.Split(string(maps), "\n") {
		if !strings.HasSuffix(line, "[vdso]") {
			continue
		}
		from, to, _ := strings.Cut(strings.Fields(line)[0], "-")
		a, _ := strconv.ParseUint(from, 16, 64)
		b, _ := strconv.ParseUint(to, 16, 64)
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			tb.Fatal(err)
		}
		defer mem.Close()
		buf := make([]byte, b-a)
		if _, err := mem.ReadAt(buf, int64(a)); err != nil {
			tb.Fatal(err)
		}
		path := filepath.Join(tb.TempDir(), "vdso.so")
		if err := os.WriteFile(path, buf, 0o644); err != nil {
			tb.Fatal(err)
		}
		return path
	}
	return ""
}

// perfScript returns the stacks of a recording by thread and time.
func perfScript(tb testing.TB, data string) map[string][]string {
	cmd := exec.Command("perf", "script", "--max-stack", "8000", "--no-inline", "-F", "tid,time,ip,sym,dso", "--ns", "-i", data)
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	stacks := map[string][]string{}
	key := ""
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := sc.Text()
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		if line[0] != '\t' {
			key = w[0] + " " + strings.ReplaceAll(strings.TrimSuffix(w[1], ":"), ".", "")
			stacks[key] = nil
			continue
		}
		dso := w[len(w)-1]
		if i := strings.LastIndex(line, " ("); i >= 0 {
			dso = line[i+1:]
		}
		ip := w[0]
		dso = strings.TrimSuffix(strings.TrimPrefix(dso, "("), ")")
		if ip == "ffffffffffffffff" { // what perf makes of a return address that could not be read
			continue
		}
		if strings.HasPrefix(dso, "/tmp/perf-") { // JIT code, mapped anonymously
			dso = "//anon"
		}
		stacks[key] = append(stacks[key], ip+" "+dso)
	}
	if err := sc.Err(); err != nil {
		tb.Fatal(err)
	}
	io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		tb.Fatalf("perf script: %v", err)
	}
	return stacks
}

// perfFrame writes a frame as perf script does: an offset in the file, of the
// byte before a return address.
func perfFrame(space *testSpace, f Frame) string {
	a := f.Addr
	if f.Return {
		a--
	}
	m := space.find(a)
	if m == nil || !m.exec {
		return fmt.Sprintf("%x [unknown]", a)
	}
	if strings.HasPrefix(m.name, "//anon") || m.name == "[heap]" {
		return fmt.Sprintf("%x %s", a, m.name)
	}
	return fmt.Sprintf("%x %s", a-m.start+m.pgoff, m.name)
}

// comparison is how our stacks and perf's agree.
type comparison struct {
	samples, equal int
	longer         int // ours continue where perf's end
	shorter        int // perf's continue where ours end
	other          int
	outcomes       [NumOutcomes]int
	differing      []string // stacks that are other, and some of the longer and shorter
	stats          DWARFStats
	frames         int
	// Of the stacks that differ: those in which every return address up to
	// and behind the difference stands behind a call instruction.
	oursSound, theirsSound int
}

// afterCall reports whether addr is in an object and stands behind a call
// instruction: what every return address must, and chance hits seldom do.
func afterCall(space *testSpace, addr uint64) bool {
	m := space.find(addr)
	if m == nil || !m.exec {
		return false
	}
	if m.mod == nil {
		return true // JIT code, not to be had
	}
	var b [7]byte
	if m.src.ReadVaddr(b[:], m.src.vaddr(addr-m.start+m.pgoff)-7) != 7 {
		return false
	}
	modrm := func(i int) bool { return b[i] == 0xff && b[i+1]>>3&7 == 2 } // call r/m64
	return b[2] == 0xe8 || modrm(5) || modrm(4) || modrm(3) || modrm(2) || modrm(1) || modrm(0)
}

// parsePerfFrame is the inverse of perfFrame, for return addresses.
func parsePerfFrame(space *testSpace, frame string) uint64 {
	ip, dso, _ := strings.Cut(frame, " ")
	off, _ := strconv.ParseUint(ip, 16, 64)
	for _, m := range space.maps {
		if m.name == dso && m.mod != nil && off >= m.pgoff && off < m.pgoff+m.end-m.start {
			return off - m.pgoff + m.start + 1
		}
	}
	return off + 1
}

func (c *comparison) judge(space *testSpace, ours []Frame, theirs []string) {
	ok := true
	for i, f := range ours {
		if m := space.find(f.Addr); i == len(ours)-1 && m != nil && m.src != nil && m.src.sections.Go {
			break // runtime.goexit seems to call goroutines from behind a nop
		}
		ok = ok && (!f.Return || f.Mode != ModeUser || afterCall(space, f.Addr))
	}
	if ok {
		c.oursSound++
	}
	ok = true
	for _, s := range theirs[1:] {
		ok = ok && afterCall(space, parsePerfFrame(space, s))
	}
	if ok {
		c.theirsSound++
	}
}

func (c *comparison) share() float64 { return 100 * float64(c.equal) / float64(max(1, c.samples)) }

func (c *comparison) String() string {
	var o []string
	for i, n := range c.outcomes {
		if n > 0 {
			o = append(o, fmt.Sprintf("%v %d", Outcome(i), n))
		}
	}
	return fmt.Sprintf("%d samples, %d frames: %.2f %% equal to perf script; %d longer, %d shorter, %d otherwise different (of these, all return addresses behind calls: ours %d, perf's %d); %s; %+v",
		c.samples, c.frames, c.share(), c.longer, c.shorter, c.other, c.oursSound, c.theirsSound, strings.Join(o, ", "), c.stats)
}

// compareWithPerf unwinds every sample of a recording and compares.
func compareWithPerf(tb testing.TB, data string) *comparison {
	want := perfScript(tb, data)
	c := &comparison{}
	var frames []Frame
	var u *Unwinder
	forSamples(tb, data, func(r *perfdata.Reader, w *world, s *perfdata.Sample) {
		if u == nil {
			u = NewUnwinder(r.Meta().Arch)
		}
		key := fmt.Sprintf("%d %d", s.TID, s.Time)
		theirs, ok := want[key]
		if !ok {
			tb.Fatalf("perf script has no sample %q", key)
		}
		space := w.space(s.PID)
		var o Outcome
		frames, o = u.Sample(frames[:0], s, space)
		c.outcomes[o]++
		c.samples++
		c.frames += len(frames)
		i := 0
		for i < len(frames) && i < len(theirs) && (frames[i].Mode != ModeUser || perfFrame(space, frames[i]) == theirs[i]) {
			i++
		}
		kind := "other"
		if i < len(frames) || i < len(theirs) {
			c.judge(space, frames, theirs)
		}
		switch {
		case i == len(frames) && i == len(theirs):
			c.equal++
			return
		case i == len(theirs):
			kind = "longer"
			c.longer++
		case i == len(frames):
			kind = "shorter"
			c.shorter++
		default:
			c.other++
		}
		if kind == "longer" && c.longer > 3 {
			return
		}
		var ours []string
		for _, f := range frames {
			ours = append(ours, perfFrame(space, f))
		}
		c.differing = append(c.differing, fmt.Sprintf("%s %s: %v, equal up to %d\n  ours  %s\n  perf  %s", kind, key, o, i,
			strings.Join(ours[max(0, i-1):], ", "), strings.Join(theirs[max(0, i-1):], ", ")))
	})
	if u != nil {
		c.stats = u.Stats
	}
	return c
}

// forSamples calls f for every sample of a recording.
func forSamples(tb testing.TB, data string, f func(*perfdata.Reader, *world, *perfdata.Sample)) {
	r, err := perfdata.Open(data)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	w := newWorld(tb)
	for rec, err := range r.Records() {
		if err != nil {
			tb.Fatal(err)
		}
		if s, ok := rec.(*perfdata.Sample); ok {
			f(r, w, s)
			continue
		}
		w.record(rec)
	}
}

// TestRecordings compares the recordings named by PERFCORRECT_RECORDINGS (a
// file name pattern), which may be any made on this machine.
func TestRecordings(t *testing.T) {
	pattern := os.Getenv("PERFCORRECT_RECORDINGS")
	if pattern == "" {
		t.Skip("set PERFCORRECT_RECORDINGS to a pattern of recordings made on this machine")
	}
	files, _ := filepath.Glob(pattern)
	for _, f := range files {
		c := compareWithPerf(t, f)
		t.Logf("%s: %v", filepath.Base(f), c)
		for _, d := range c.differing[:min(len(c.differing), 20)] {
			t.Log(d)
		}
	}
}
