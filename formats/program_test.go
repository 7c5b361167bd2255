package formats

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

const programSource = `
int sink;
__attribute__((noinline)) void leaf(int n) { sink += n; }

__attribute__((noinline)) void leaf_more(int n) {
	leaf(n);
	leaf(n + 1);
	sink++;
}
int main(void) { leaf_more(3); leaf(4); return sink; }
`

// program is a real executable to take locations from.
type program struct {
	store *image.Store
	image *image.Image
	entry map[string]uint64 // file offsets of functions
}

func newProgram(t *testing.T) *program {
	t.Helper()
	dir := t.TempDir()
	src, exe := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog")
	if err := os.WriteFile(src, []byte(programSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-g", "-O0", "-o", exe, src).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{store: image.NewStore(image.Options{}), entry: map[string]uint64{}}
	text := f.Section(".text")
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			p.entry[s.Name] = s.Value - text.Addr + text.Offset
		}
	}
	p.image = p.store.Image(image.Key{Path: exe})
	return p
}

func (p *program) ip(name string, off uint64) image.Loc {
	return p.store.Loc(image.Addr{Image: p.image, Offset: p.entry[name] + off})
}

func (p *program) ret(name string, off uint64) image.Loc {
	return p.store.Loc(image.Addr{Image: p.image, Offset: p.entry[name] + off, Return: true})
}

func (p *program) profile() *Profile {
	return &Profile{
		Store: p.store, Method: "density", EventName: "cpu", EventUnit: "nanoseconds",
		Stacks: graph.NewStacks(), DCG: graph.NewDCG(),
		Start: 1_700_000_000_000_000_000, Duration: 5_000_000_000, Period: 1_000_000, Comments: []string{"a comment"},
	}
}
