package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inMain is the offset of the first byte of main.
func inMain(t *testing.T, path string) uint64 {
	t.Helper()
	all, _ := nm(t, path)
	s := testStore(t, Options{})
	im := s.Image(Key{Path: path})
	for _, y := range all {
		if y.name == "leaf" {
			off, ok := im.FileOffset(y.addr)
			if !ok {
				t.Fatal("leaf is in no segment")
			}
			return off
		}
	}
	t.Fatalf("nm shows no leaf in %s", path)
	return 0
}

func nameAt(s *Store, k Key, off uint64) string {
	if f := s.Function(s.Loc(Addr{Image: s.Image(k), Offset: off})); f != nil {
		return f.Name
	}
	return "none"
}

func TestBuildIDIsChecked(t *testing.T) {
	path := compile(t, "calls.c")
	at, id := inMain(t, path), buildIDOf(t, path)
	if got := nameAt(testStore(t, Options{}), Key{Path: path, BuildID: id}, at); got != "leaf" {
		t.Errorf("with its build ID: %s", got)
	}
	// Linux before 5.10 pads short build IDs with zeros.
	short := filepath.Join(t.TempDir(), "md5")
	run(t, "gcc", "-O2", "-Wl,--build-id=md5", "-o", short, "testdata/calls.c")
	padded := buildIDOf(t, short) + "00000000"
	if got := nameAt(testStore(t, Options{}), Key{Path: short, BuildID: padded}, inMain(t, short)); got != "leaf" {
		t.Errorf("with its build ID padded: %s", got)
	}

	other := strings.Repeat("ab", 20)
	s := testStore(t, Options{})
	if got := nameAt(s, Key{Path: path, BuildID: other}, at); got != "none" {
		t.Errorf("a file with another build ID was used: %s", got)
	}
	nameAt(s, Key{Path: path, BuildID: other}, at+1)
	ps := s.Problems()
	if len(ps) != 1 || ps[0].Kind != Mismatch || ps[0].Locs != 2 || ps[0].Path != path ||
		!strings.Contains(ps[0].What, id) || !strings.Contains(ps[0].What, other) {
		t.Errorf("problems: %+v", ps)
	}
}

// TestCache finds an object that is gone, or replaced, in perf's build-ID
// cache.
func TestCache(t *testing.T) {
	path := compile(t, "calls.c")
	at, id := inMain(t, path), buildIDOf(t, path)
	for _, layout := range []string{"/elf", ""} {
		s := testStore(t, Options{})
		install(t, path, filepath.Join(s.opt.BuildIDDir, ".build-id", id[:2], id[2:])+layout)
		if got := nameAt(s, Key{Path: "/no/such/file", BuildID: id}, at); got != "leaf" {
			t.Errorf("layout %q: %s", layout, got)
		}
		if ps := s.Problems(); len(ps) != 0 {
			t.Errorf("layout %q: problems %v", layout, ps)
		}
		if got := nameAt(s, Key{Path: libc, BuildID: id}, at); got != "leaf" {
			t.Errorf("layout %q, path replaced: %s", layout, got)
		}
	}
}

func TestMissing(t *testing.T) {
	s := testStore(t, Options{})
	if got := nameAt(s, Key{Path: "/no/such/file"}, 0x1000); got != "none" {
		t.Error(got)
	}
	if ps := s.Problems(); len(ps) != 1 || ps[0].Kind != Missing || ps[0].Locs != 1 {
		t.Errorf("problems: %+v", ps)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	run(t, "mkfifo", fifo)
	if got := nameAt(s, Key{Path: fifo}, 0); got != "none" {
		t.Error(got)
	}
	if p := s.Image(Key{Path: fifo}).Problem(); p == nil || p.Kind != Damaged {
		t.Errorf("a FIFO: %v", p)
	}
}

func TestSymfs(t *testing.T) {
	path := compile(t, "calls.c")
	at := inMain(t, path)
	root := t.TempDir()
	install(t, path, filepath.Join(root, "/opt/app/bin/calls"))
	if got := nameAt(testStore(t, Options{Symfs: root}), Key{Path: "/opt/app/bin/calls"}, at); got != "leaf" {
		t.Error(got)
	}
}

// TestSeparateDebug strips a program and gives its symbols and lines back
// through each of the ways a debug file is found.
func TestSeparateDebug(t *testing.T) {
	full := compile(t, "calls.c", "-g")
	at, id := inMain(t, full), buildIDOf(t, full)
	dir := t.TempDir()
	debug, stripped := filepath.Join(dir, "calls.debug"), filepath.Join(dir, "calls")
	run(t, "objcopy", "--only-keep-debug", full, debug)
	run(t, "objcopy", "--strip-all", "--add-gnu-debuglink="+debug, full, stripped)
	text := func(s *Store, im *Image) string { return string(im.Text(at, 16)) }
	whole := testStore(t, Options{})
	code := text(whole, whole.Image(Key{Path: full}))
	wantFile, wantLine := whole.Line(whole.Loc(Addr{Image: whole.Image(Key{Path: full}), Offset: at}))
	if wantLine == 0 {
		t.Fatal("no line in the program that was not stripped")
	}
	check := func(what string, s *Store) {
		t.Helper()
		k := Key{Path: stripped, BuildID: id}
		im := s.Image(k)
		if got := nameAt(s, k, at); got != "leaf" {
			t.Errorf("%s: %s", what, got)
		}
		if file, line := s.Line(s.Loc(Addr{Image: im, Offset: at})); file != wantFile || line != wantLine {
			t.Errorf("%s: %s:%d, want %s:%d", what, file, line, wantFile, wantLine)
		}
		if text(s, im) != code {
			t.Errorf("%s: the code is not that of the program", what)
		}
		if ps := s.Problems(); len(ps) > 0 {
			t.Errorf("%s: problems %v", what, ps)
		}
	}

	check("debuglink beside the file", testStore(t, Options{}))
	inDir := filepath.Join(dir, ".debug", "calls.debug")
	install(t, debug, inDir)
	os.Remove(debug)
	check("debuglink in .debug", testStore(t, Options{}))
	global := t.TempDir()
	install(t, inDir, filepath.Join(global, dir, "calls.debug"))
	os.RemoveAll(filepath.Dir(inDir))
	check("debuglink under the debug directory", testStore(t, Options{DebugDirs: []string{global}}))
	byID := t.TempDir()
	install(t, filepath.Join(global, dir, "calls.debug"), filepath.Join(byID, ".build-id", id[:2], id[2:]+".debug"))
	check("build ID under the debug directory", testStore(t, Options{DebugDirs: []string{byID}}))
	cache := t.TempDir()
	install(t, filepath.Join(global, dir, "calls.debug"), filepath.Join(cache, ".build-id", id[:2], id[2:], "debug"))
	check("build ID in the cache", testStore(t, Options{BuildIDDir: cache}))

	// A file of that name with another CRC is not it.
	install(t, full, debug)
	if got := nameAt(testStore(t, Options{}), Key{Path: stripped, BuildID: id}, at); got != "" {
		t.Errorf("a debug file with a wrong CRC gave %q", got)
	}
}

// TestStripped knows the functions of a stripped program from its unwind
// tables, with the bounds nm saw before.
func TestStripped(t *testing.T) {
	full := compile(t, "calls.c")
	stripped := filepath.Join(t.TempDir(), "calls")
	run(t, "objcopy", "--strip-all", full, stripped)
	s := testStore(t, Options{})
	im := s.Image(Key{Path: stripped})
	all, _ := nm(t, full)
	found := 0
	for _, y := range all {
		if !contains([]string{"leaf", "visit", "cmpi", "main"}, y.name) {
			continue
		}
		found++
		entry, _ := im.FileOffset(y.addr)
		f := s.Function(s.Loc(Addr{Image: im, Offset: entry + y.size/2}))
		if f == nil || f.Name != "" || f.Entry != entry || f.End != entry+y.size {
			t.Errorf("%s [%#x, %#x) is %+v", y.name, entry, entry+y.size, f)
		}
	}
	if found != 4 {
		t.Fatalf("nm shows %d of the 4 functions", found)
	}
}

// TestContainer finds a file under the root of the process that had it
// mapped, on the host of the recording only.
func TestContainer(t *testing.T) {
	inside := compile(t, "calls.c")
	at := inMain(t, inside)
	proc := t.TempDir()
	install(t, inside, filepath.Join(proc, "77/root/app/program"))
	for _, c := range []struct {
		same    bool
		process int32
		want    string
	}{{true, 77, "leaf"}, {false, 77, "none"}, {true, 78, "none"}, {true, 0, "none"}} {
		s := testStore(t, Options{SameHost: c.same})
		s.procDir = proc
		k := Key{Path: "/app/program"}
		s.Image(k).SetProcess(c.process)
		if got := nameAt(s, k, at); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestNamesOfFilelessImages(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "tmp/perf-5.map"), []byte("1000 10 f\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := testStore(t, Options{Symfs: root})
	for k, want := range map[Key]string{
		{Kind: JIT, PID: 7, Path: "/memfd:doublemapper (deleted)"}: "memfd:doublemapper",
		{Kind: JIT, PID: 7, Path: "/opt/app/lib.so (deleted)"}:     "lib.so",
		{Kind: JIT, PID: 7, Path: "//anon"}:                        "perf-7.map",
		{Kind: JIT, PID: 5, Path: "/memfd:v8 (deleted)"}:           "perf-5.map", // its code has names
	} {
		if got := s.Image(k).Name(); got != want {
			t.Errorf("%+v is %s, want %s", k, got, want)
		}
	}
}
