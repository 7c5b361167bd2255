package formats

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

const inlineSource = `volatile int sink;
static inline __attribute__((always_inline)) void inner(int n) {
	sink += n;
}
static inline __attribute__((always_inline)) void middle(int n) {
	inner(n + 1);
}
__attribute__((noinline)) void outer(int n) {

	middle(n);
}
int main(void) { outer(1); return 0; }
`

// inlineProfile is one sample of an instruction of inner, inlined twice.
func inlineProfile(t *testing.T) *Profile {
	t.Helper()
	dir := t.TempDir()
	src, exe := filepath.Join(dir, "inline.c"), filepath.Join(dir, "inline")
	if err := os.WriteFile(src, []byte(inlineSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-g", "-O1", "-o", exe, src).CombinedOutput(); err != nil {
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
	p := &Profile{Store: image.NewStore(image.Options{}), Method: "none", Inline: true, Stacks: graph.NewStacks()}
	im := p.Store.Image(image.Key{Path: exe})
	text := f.Section(".text")
	for _, y := range syms {
		if y.Name != "outer" {
			continue
		}
		for off := y.Value; off < y.Value+y.Size; off++ {
			l := p.Store.Loc(image.Addr{Image: im, Offset: off - text.Addr + text.Offset})
			if frames := p.Store.Frames(l); len(frames) == 3 && p.Stacks.Len() == 0 {
				p.Stacks.Add(graph.Label{Comm: "c"}, []image.Loc{l}, graph.Values{Samples: 1})
			}
		}
	}
	if p.Stacks.Len() == 0 {
		t.Fatal("gcc inlined nothing")
	}
	return p
}

func TestInlinedFolded(t *testing.T) {
	p := inlineProfile(t)
	for inline, want := range map[bool]string{true: "c;outer;middle;inner 1\n", false: "c;outer 1\n"} {
		p.Inline = inline
		var b bytes.Buffer
		if err := writeFolded(&b, p); err != nil || b.String() != want {
			t.Errorf("inline %v: %q, %v; want %q", inline, &b, err, want)
		}
	}
}

// TestInlinedPprof checks lines and start lines, which PGO takes the
// difference of: that of every call is 1 here, or 2 in outer.
func TestInlinedPprof(t *testing.T) {
	p := inlineProfile(t)
	for inline, want := range map[bool]string{true: "inner:3-2 middle:6-5 outer:10-8", false: "outer:10-8"} {
		p.Inline = inline
		var b bytes.Buffer
		if err := writeStacksPprof(&b, p); err != nil {
			t.Fatal(err)
		}
		prof, err := profile.Parse(&b)
		if err == nil {
			err = prof.CheckValid()
		}
		if err != nil || len(prof.Location) != 1 {
			t.Fatalf("%v, %d locations", err, len(prof.Location))
		}
		var got []string
		for _, l := range prof.Location[0].Line {
			got = append(got, l.Function.Name+":"+itoa(l.Line)+"-"+itoa(l.Function.StartLine))
			if filepath.Base(l.Function.Filename) != "inline.c" || l.Function.SystemName != l.Function.Name {
				t.Errorf("%+v", l.Function)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("inline %v: %v, want %s", inline, got, want)
		}
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
