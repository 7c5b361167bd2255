package record

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

func TestParseMapsLine(t *testing.T) {
	m, ok := parseMapsLine("55d0c1e00000-55d0c1e02000 r-xp 00001000 08:01 1234                       /usr/bin/with space (deleted)\n")
	if !ok || m.Addr != 0x55d0c1e00000 || m.Len != 0x2000 || m.Pgoff != 0x1000 || m.Maj != 8 || m.Min != 1 || m.Ino != 1234 ||
		m.Prot != protRead|protExec || m.MapFlags != mapPrivate || m.Filename != "/usr/bin/with space (deleted)" {
		t.Errorf("%+v, %v", m, ok)
	}
	if m, ok = parseMapsLine("7f00-8000 rwxs 00000000 00:00 0 \n"); !ok || m.Filename != "//anon" || m.Prot != 7 || m.MapFlags != mapShared {
		t.Errorf("anonymous: %+v, %v", m, ok)
	}
	if m, ok = parseMapsLine("7fff0000-7fff2000 r-xp 00000000 00:00 0                          [vdso]"); !ok || m.Filename != "[vdso]" {
		t.Errorf("vdso: %+v, %v", m, ok)
	}
	for _, bad := range []string{"", "\n", "x-y r-xp 0 0:0 0", "10-20 r-xp 0", "20-10 r-xp 0 0:0 0 a", "10-20 r 0 0:0 0 a", "10-20 r-xp 0 00 0 a"} {
		if m, ok := parseMapsLine(bad); ok {
			t.Errorf("%q: %+v", bad, m)
		}
	}
}

func TestKernelMap(t *testing.T) {
	kernel := func(text string) (*perfdata.Mmap, error) {
		return kernelMap(fstest.MapFS{"kallsyms": {Data: []byte(text)}})
	}
	m, err := kernel("ffffffff9a000000 T _stext\nffffffff9a000000 T _text\nffffffff9b002000 T _etext\n")
	if err != nil || m.Addr != 0xffffffff9a000000 || m.Pgoff != m.Addr || m.Filename != "[kernel.kallsyms]_text" || m.Addr+m.Len < 0xffffffff9b002000 || m.Misc != perfdata.MiscKernel {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err = kernel("ffff800008010000 T _stext\nffff800009000000 T _etext\n"); err != nil || m.Len != 0xff0000 || m.Filename != "[kernel.kallsyms]_stext" {
		t.Errorf("arm64: %+v, %v", m, err)
	}
	if _, err = kernel("0000000000000000 T _stext\n0000000000000000 T _text\n"); err != errNoKernelAddresses {
		t.Errorf("hidden addresses: %v", err)
	}
	all, err := modules(fstest.MapFS{"modules": {Data: []byte("ext4 1024000 2 - Live 0xffffffffc0400000\njbd2 200704 1 ext4, Live 0x0000000000000000\nshort\n")}})
	if err != nil || len(all) != 1 || all[0].Filename != "[ext4]" || all[0].Addr != 0xffffffffc0400000 || all[0].Len != 1024000 {
		t.Errorf("modules: %+v, %v", all, err)
	}
}

// What ran before, of a made-up /proc.
func TestExisting(t *testing.T) {
	proc := fstest.MapFS{
		"7/stat":         {Data: []byte("7 (a) b (c) S 3 7 7 0")},
		"7/task/7/comm":  {Data: []byte("a) b (c\n")},
		"7/task/9/comm":  {Data: []byte("worker\n")},
		"7/maps":         {Data: []byte("10000-20000 r-xp 0 08:01 5 /bin/x\n20000-30000 r--p 0 08:01 5 /bin/x\nnonsense\n")},
		"8/task/8/other": {Data: []byte("")}, // ended meanwhile
		"self/x":         {Data: nil},
	}
	var got []perfdata.Record
	x := &existing{proc: proc, emit: func(r perfdata.Record) error { got = append(got, r); return nil }}
	if err := x.all(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 5 || x.gone != 1 {
		t.Fatalf("%d records, %d gone: %+v", len(got), x.gone, got)
	}
	if f := got[0].(*perfdata.Task); f.TaskPID != 7 || f.TaskPPID != 3 || f.Misc != perfdata.MiscForkExec {
		t.Errorf("fork %+v", f)
	}
	if c := got[1].(*perfdata.Comm); c.Comm != "a) b (c" {
		t.Errorf("comm %+v", c)
	}
	if m := got[2].(*perfdata.Mmap); m.Addr != 0x10000 || m.MapPID != 7 {
		t.Errorf("mmap %+v", m)
	}
	if f := got[3].(*perfdata.Task); f.TaskTID != 9 || f.TaskPPID != 7 || f.TaskPTID != 7 {
		t.Errorf("fork of a thread %+v", f)
	}
}

func TestReadBuildID(t *testing.T) {
	for _, path := range []string{"/bin/sh", program(t, "calls")} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got := hex.EncodeToString(ReadBuildID(f))
		f.Close()
		out, err := exec.Command("readelf", "-n", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindSubmatch(out)
		if want == nil || got != string(want[1]) {
			t.Errorf("%s: %s, readelf says %s", path, got, want)
		}
	}
}

func FuzzReadBuildID(f *testing.F) {
	b, err := os.ReadFile("/bin/true")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:min(len(b), 2048)])
	f.Add([]byte("\x7fELF\x01\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id := ReadBuildID(bytes.NewReader(b)); len(id) > maxBuildID {
			t.Errorf("%d bytes", len(id))
		}
		BuildIDInNotes(b, binary.BigEndian)
	})
}

func TestFindProbes(t *testing.T) {
	path := program(t, "calls")
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	text := f.Section(".text")
	var want uint64
	for _, s := range syms {
		if s.Name == "work" {
			want = s.Value - text.Addr + text.Offset
		}
	}
	for spec, n := range map[string]int{"work": 1, path + ":work": 1, "s[ep]*[mn]": 2, "work+0x4": 1} {
		p, err := FindProbes(spec, path)
		if err != nil || len(p) != n {
			t.Errorf("%s: %v, %v, want %d", spec, p, err, n)
			continue
		}
		if spec == "work" && (p[0].Offset != want || p[0].Path != path || p[0].Symbol != "work") {
			t.Errorf("%+v, want offset %#x", p[0], want)
		}
		if spec == "work+0x4" && p[0].Offset != want+4 {
			t.Errorf("%+v, want offset %#x", p[0], want+4)
		}
	}
	for spec, want := range map[string]string{"nothing": "no function", "work+x": "no offset", "/nonexistent:f": "no such file", "/etc/passwd:f": "bad magic"} {
		if _, err := FindProbes(spec, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
	stripped := filepath.Join(t.TempDir(), "stripped")
	if err := exec.Command("strip", "-o", stripped, path).Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := FindProbes("work", stripped); err == nil || !strings.Contains(err.Error(), "no function") {
		t.Errorf("stripped: %v", err)
	}
}

// records makes ring contents: types with sizes.
func ringBytes(recs ...[]byte) []byte { return bytes.Join(recs, nil) }

func rawRecord(typ perfdata.RecordType, size int, words ...uint64) []byte {
	b := make([]byte, size)
	ne := binary.NativeEndian
	ne.PutUint32(b, uint32(typ))
	ne.PutUint16(b[6:], uint16(size))
	for i, w := range words {
		ne.PutUint64(b[8+8*i:], w)
	}
	return b
}

// A ring is read in two parts wherever it wraps.
func TestScanner(t *testing.T) {
	mmap := rawRecord(perfdata.TypeMmap2, 8+64+16+sampleIDSize, 5|6<<32, 0x1000, 0x2000, 0, 8|1<<32, 42, 0, 5)
	copy(mmap[72:], "/bin/program")
	all := ringBytes(
		rawRecord(perfdata.TypeSample, 64, 1, 2, 3, 1000),
		mmap,
		rawRecord(perfdata.TypeLost, 24+sampleIDSize, 1, 17),
		rawRecord(perfdata.TypeLostSamples, 16+sampleIDSize, 4),
		rawRecord(perfdata.TypeThrottle, 32+sampleIDSize),
		rawRecord(perfdata.TypeComm, 32+sampleIDSize),
		rawRecord(perfdata.TypeSample, 64, 1, 2, 3, 900),
	)
	for cut := 0; cut <= len(all); cut += 8 {
		var mapped []*perfdata.Mmap
		var written []byte
		s := &scanner{tailSize: sampleIDSize, mapped: func(m *perfdata.Mmap) { mapped = append(mapped, m) }}
		s.write = func(b []byte) { written = append(written, b...) }
		s.records(all[:cut], all[cut:])
		if !bytes.Equal(written, all) {
			t.Fatalf("cut at %d: %d of %d bytes written", cut, len(written), len(all))
		}
		if s.Samples != 2 || s.Lost != 17 || s.LostSamples != 4 || s.Throttled != 1 || s.Records != 7 || s.First != 900 || s.Last != 1000 || s.BadRecords != 0 {
			t.Fatalf("cut at %d: %+v", cut, s.Counts)
		}
		if len(mapped) != 1 || mapped[0].Filename != "/bin/program" || mapped[0].Ino != 42 || mapped[0].MapPID != 5 {
			t.Fatalf("cut at %d: %+v", cut, mapped)
		}
	}
	s := &scanner{}
	s.records(rawRecord(perfdata.TypeSample, 64)[:32], nil)
	if s.BadRecords != 1 {
		t.Errorf("a cut record was not counted: %+v", s.Counts)
	}
}

func TestFilter(t *testing.T) {
	f := &filter{pids: map[uint32]bool{10: true}, tail: sampleIDSize}
	pair := func(a, b uint32) uint64 { return uint64(a) | uint64(b)<<32 }
	sample := func(pid uint32) []byte { return rawRecord(perfdata.TypeSample, 64, 1, 0x1234, pair(pid, pid), 5) }
	fork := func(pid, ppid uint32) []byte {
		return rawRecord(perfdata.TypeFork, 64, pair(pid, ppid), pair(pid, ppid))
	}
	comm := func(pid uint32) []byte { return rawRecord(perfdata.TypeComm, 64, pair(pid, pid)) }
	for i, c := range []struct {
		typ  perfdata.RecordType
		rec  []byte
		keep bool
	}{
		{perfdata.TypeSample, sample(10), true},
		{perfdata.TypeSample, sample(11), false},
		{perfdata.TypeFork, fork(11, 10), true},
		{perfdata.TypeSample, sample(11), true},
		{perfdata.TypeFork, fork(12, 11), true},
		{perfdata.TypeComm, comm(12), true},
		{perfdata.TypeComm, comm(13), false},
		{perfdata.TypeFork, fork(12, 99), false}, // the number used again
		{perfdata.TypeSample, sample(12), false},
		{perfdata.TypeLost, rawRecord(perfdata.TypeLost, 56, 1, 1), true},
	} {
		if got := f.keep(c.typ, c.rec); got != c.keep {
			t.Errorf("record %d: kept %v", i, got)
		}
	}
}

func TestTracedProbeNames(t *testing.T) {
	p := &tracedProbes{}
	for _, c := range []struct{ symbol, want string }{
		{"work", "work"}, {"work", "work_2"}, {"std::sort<int>", "std__sort_int_"}, {"0x", "f0x"}, {"", "f"},
		{strings.Repeat("x", 100), strings.Repeat("x", 48)},
	} {
		if c.symbol == "work" && c.want == "work_2" {
			p.events = append(p.events, "work")
		}
		if got := p.unique(c.symbol); got != c.want {
			t.Errorf("%q: %q, want %q", c.symbol, got, c.want)
		}
	}
}
