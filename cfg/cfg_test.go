package cfg

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
)

func compile(t *testing.T, src string, args ...string) (*ImageCode, func(string) *Graph) {
	t.Helper()
	dir := t.TempDir()
	c, bin := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.so")
	if err := os.WriteFile(c, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", append([]string{"-O2", "-fPIC", "-shared", "-o", bin, c}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	code := &ImageCode{Image: image.NewStore(image.Options{}).Image(image.Key{Kind: image.File, Path: bin})}
	return code, func(name string) *Graph {
		for _, s := range syms {
			if s.Name == name {
				return Build(code, s.Value, s.Value+s.Size)
			}
		}
		t.Fatalf("no symbol %s", name)
		return nil
	}
}

func TestSwitchTailCallNoReturn(t *testing.T) {
	_, graph := compile(t, `
#include <stdlib.h>
extern int f0(int), f1(int), f2(int), f3(int), f4(int), f5(int), f6(int), f7(int);
int dispatch(int op, int x) {
  int s = 0;
  for (int i = 0; i < x; i++)
    switch (op + i) {
    case 0: s += f0(x); break; case 1: s -= f1(x); break; case 2: s ^= f2(x); break; case 3: s += 7 * f3(x); break;
    case 4: s |= f4(x); break; case 5: s &= f5(x); break; case 6: s = f6(s); break; case 7: s += f7(s) * 3; break;
    default: s++;
    }
  return s;
}
int tail(int x) { return f0(x + 1); }
void *must(size_t n) { void *p = malloc(n); if (!p) abort(); return p; }
`)
	g := graph("dispatch")
	if !g.Trusted() {
		t.Errorf("dispatch is not trusted: %v", g.Doubts)
	}
	calls := map[int]bool{}
	for _, c := range g.Calls {
		calls[c.Block] = true
	}
	if len(calls) != 8 {
		t.Errorf("calls are in %d blocks, want 8: %+v", len(calls), g.Calls)
	}
	for i, b := range g.Blocks {
		if !b.Reached {
			t.Errorf("block %d at %#x is not reached", i, b.Start)
		}
		if calls[i] && b.Class == g.Blocks[g.Start].Class {
			t.Errorf("block %d of a case is in the class of the entry", i)
		}
	}
	g = graph("tail")
	if len(g.Calls) != 1 || !g.Calls[0].Tail || g.Calls[0].Target == 0 {
		t.Errorf("tail: calls %+v", g.Calls)
	}
	g = graph("must")
	var ends int
	for _, c := range g.Calls {
		if c.NoReturn {
			ends++
			if b := g.Blocks[c.Block]; b.Class == g.Blocks[g.Start].Class {
				t.Errorf("the call of abort runs as often as the entry: %+v", b)
			}
		}
	}
	if len(g.Calls) != 2 || ends != 1 {
		t.Errorf("must: calls %+v", g.Calls)
	}
}

// TestRealPrograms builds the graph of every function that unwind tables or
// symbols delimit in large programs, and says how many can be trusted.
func TestRealPrograms(t *testing.T) {
	libc, err := exec.Command("gcc", "-print-file-name=libc.so.6").Output()
	if err != nil {
		t.Fatal(err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{strings.TrimSpace(string(libc)), git, goTool} {
		t.Run(filepath.Base(file), func(t *testing.T) { realProgram(t, file) })
	}
}

func realProgram(t *testing.T, file string) {
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	im := image.NewStore(image.Options{}).Image(image.Key{Kind: image.File, Path: file})
	code := &ImageCode{Image: im}
	functions, insts, trusted, trustedInsts := 0, 0, 0, 0
	why := map[string]int{}
	examples := map[string]uint64{}
	end := text.Offset + text.Size
	for off := text.Offset; off < end; {
		fn := im.FunctionAt(off)
		if fn == nil || fn.End <= off {
			off++
			continue
		}
		vaddr := fn.Entry - text.Offset + text.Addr
		g := Build(code, vaddr, vaddr+fn.End-fn.Entry)
		off = fn.End
		functions++
		n := 0
		for _, b := range g.Blocks {
			n += b.Insts
		}
		insts += n
		if g.Trusted() {
			trusted++
			trustedInsts += n
		} else {
			why[g.Doubts[0].Why]++
			examples[g.Doubts[0].Why] = g.Doubts[0].At
		}
		if len(g.Blocks) > 0 && g.Blocks[g.Start].Start != vaddr {
			t.Errorf("%#x: start block at %#x", vaddr, g.Blocks[g.Start].Start)
		}
	}
	t.Logf("%d functions, %.2f %% trusted; %d instructions, %.2f %% in trusted functions",
		functions, 100*float64(trusted)/float64(functions), insts, 100*float64(trustedInsts)/float64(insts))
	for w, n := range why {
		t.Logf("%6d: %s, e.g. at %#x", n, w, examples[w])
	}
	if functions < 2000 || trusted*100 < functions*97 {
		t.Errorf("%d of %d functions are trusted", trusted, functions)
	}
}
