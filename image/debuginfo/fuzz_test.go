package debuginfo

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const source = `
static inline int inner(int n) { return n * n + 1; }
static inline int middle(int n) { return inner(n) + inner(n + 1); }
int outer(int n) { struct s { int a; } x = { middle(n) }; return x.a; }
`

// small builds an object without relocations of a few hundred bytes of
// debug information, and returns its sections.
func small(t testing.TB, args ...string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	src, out := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(args, "-O2", "-g", "-shared", "-nostdlib", "-o", out, src)
	if msg, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, msg)
	}
	f, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]byte{}
	for _, s := range f.Sections {
		if strings.HasPrefix(s.Name, ".debug_") {
			if all[s.Name], err = s.Data(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// ask opens sections and asks about addresses; split units and supplementary
// files are the same sections again.
func ask(sections map[string][]byte) (answered int) {
	src := Source{Path: "fuzz", Section: func(name string) (Section, error) {
		return Section{Data: sections[strings.TrimSuffix(name, ".dwo")]}, nil
	}}
	again := src
	src.Split = func(string, string) *Source { return &again }
	src.Alternate = func() *Source { return &again }
	f, err := Open(src)
	if err != nil {
		return 0
	}
	qs := make([]Query, 0, 1<<12)
	for addr := range uint64(1 << 12) {
		qs = append(qs, Query{Addr: 0x1000 - 0x800 + addr})
	}
	f.Describe(qs)
	for i := range qs {
		for in := qs[i].Inlined; in != nil; in = in.Outer {
			answered++
			_ = in.Function.Name
		}
	}
	return answered
}

func FuzzDescribe(f *testing.F) {
	for _, v := range []string{"-gdwarf-2", "-gdwarf-4", "-gdwarf-5"} {
		s := small(f, v)
		if ask(s) == 0 {
			f.Fatal("nothing inlined in the seed")
		}
		f.Add(s[".debug_info"], s[".debug_abbrev"], s[".debug_line"], s[".debug_str"], append(s[".debug_ranges"], s[".debug_rnglists"]...), s[".debug_line_str"])
	}
	f.Fuzz(func(t *testing.T, info, abbrev, line, str, ranges, lineStr []byte) {
		ask(map[string][]byte{
			".debug_info": info, ".debug_abbrev": abbrev, ".debug_line": line, ".debug_str": str, ".debug_line_str": lineStr,
			".debug_ranges": ranges, ".debug_rnglists": ranges, ".debug_addr": ranges, ".debug_str_offsets": ranges, ".debug_cu_index": ranges, ".debug_types": info,
		})
	})
}

// TestDamageIsBounded sets every byte of small debug information to values
// that make sizes and offsets wild, and looks at what that makes us allocate.
func TestDamageIsBounded(t *testing.T) {
	for _, v := range []string{"-gdwarf-4", "-gdwarf-5"} {
		s := small(t, v)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		runs := 0
		for _, b := range s {
			for i := range b {
				old := b[i]
				for _, x := range []byte{0, 0x7f, 0xff} {
					b[i] = x
					ask(s)
					runs++
				}
				b[i] = old
			}
		}
		runtime.ReadMemStats(&after)
		if per := (after.TotalAlloc - before.TotalAlloc) / uint64(runs); per > 1<<20 {
			t.Errorf("%s: %d bytes allocated each time", v, per)
		}
		if ask(s) == 0 {
			t.Error("nothing inlined")
		}
	}
}
