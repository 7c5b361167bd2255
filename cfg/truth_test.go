package cfg

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/image/x86"
	"github.com/perfcorrect/perfcorrect/testdata/vpmu"
)

// TestExecuted compares graphs with what programs really did on the virtual
// PMU: every place a branch went to must be a successor of the block the
// branch ends, every call must be known with its target, and the blocks of a
// class must not be told apart by counts. The programs have jump tables,
// computed gotos (tclsh), cold parts, tail calls and calls that never return.
func TestExecuted(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	tcl := file("a.tcl", `proc fib n {if {$n < 2} {return $n}; expr {[fib [expr {$n-1}]] + [fib [expr {$n-2}]]}}
puts [fib 12]
foreach w [split [string repeat "one two three " 40]] {incr c($w)}
puts [lsort [array names c]]
puts [regsub -all {t(.)} [string repeat tatb 30] {\1}]
catch {error oops}
`)
	bc := file("a.bc", "scale=30\na(1)*4\ne(2)\nfor(i=0;i<30;i++) i^7%13\n")
	for _, args := range [][]string{{"bc", "-lq", bc}, {"tclsh", tcl}, {"ls", "-laR", "/etc/apt"}} {
		t.Run(args[0], func(t *testing.T) { executed(t, args) })
	}
}

func executed(t *testing.T, args []string) {
	dir := t.TempDir()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	work := filepath.Join(cache, "perfcorrect-vpmu-test")
	_, err = vpmu.Run(context.Background(), vpmu.Config{
		Program: args, TruthDir: dir, WorkDir: work, NoCCT: true, Paths: true, Stdout: io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{t: t, store: image.NewStore(image.Options{}), graphs: map[*image.Function]*Graph{}, doubts: map[string]uint64{}}
	eachLine(t, filepath.Join(dir, "paths.jsonl"), c.path)
	eachLine(t, filepath.Join(dir, "dcg.jsonl"), c.call)
	t.Logf("%d branches of trusted graphs: %d of %d weighted wrong; %d in graphs not trusted; %d calls, %d unknown",
		len(c.seen), c.wrong, c.right+c.wrong, c.untrusted, c.calls, c.unknown)
	for why, n := range c.doubts {
		if n*50 > c.right {
			t.Logf("%8d in %s", n, why)
		}
	}
	if c.right < 5000 || c.calls < 300 {
		t.Error("too little was compared")
	}
	if c.wrong > 0 || c.unknown > 0 {
		t.Errorf("%d branches and %d calls that were executed are not in the graphs", c.wrong, c.unknown)
	}
	if c.untrusted*7 > c.right {
		t.Error("more than 15 % of executed branches are in graphs that are not trusted")
	}
}

func eachLine[T any](t *testing.T, path string, do func(T)) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var l T
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		do(l)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
}

type checker struct {
	t      *testing.T
	store  *image.Store
	graphs map[*image.Function]*Graph
	seen   map[[3]uint64]bool
	doubts map[string]uint64

	right, wrong, untrusted uint64 // branches, each as often as it was executed
	calls, unknown          int    // call sites
}

// graph returns the graph of the function at an offset and what makes offsets
// of it link-time addresses.
func (c *checker) graph(module string, offset uint64) (g *Graph, bias uint64) {
	if strings.HasPrefix(module, "//") {
		return nil, 0
	}
	im := c.store.Image(image.Key{Kind: image.File, Path: module})
	fn := im.FunctionAt(offset)
	if fn == nil || fn.Stub || strings.Contains(fn.System, ".cold") {
		return nil, 0
	}
	vaddr, ok := im.Vaddr(fn.Entry)
	if !ok {
		return nil, 0
	}
	if c.graphs[fn] == nil {
		c.graphs[fn] = Build(&ImageCode{Image: im}, vaddr, vaddr+fn.End-fn.Entry)
	}
	return c.graphs[fn], vaddr - fn.Entry
}

// path follows an acyclic path: from each place straight on to the next
// branch, which must have the next place among its successors.
func (c *checker) path(l vpmu.PathLine) {
	g, bias := c.graph(l.Module, l.Path[0])
	if g == nil {
		return
	}
	if c.seen == nil {
		c.seen = map[[3]uint64]bool{}
	}
	for i := 0; i+1 < len(l.Path); i++ {
		from, to := l.Path[i]+bias, l.Path[i+1]+bias
		c.seen[[3]uint64{from, to}] = true
		if !g.Trusted() {
			c.untrusted += l.Count
			c.doubts[l.Function+": "+g.Doubts[0].Why] += l.Count
			continue
		}
		b := g.BlockAt(from)
		for b >= 0 && noBranch(g.Blocks[b].LastKind) && len(g.Blocks[b].Succs) == 1 && g.Blocks[b].Succs[0] < len(g.Blocks) {
			b = g.Blocks[b].Succs[0] // no branch: falls through
		}
		next := g.BlockAt(to)
		if b < 0 || next < 0 || g.Blocks[next].Start != to || !slices.Contains(g.Blocks[b].Succs, next) || !g.Blocks[next].Reached {
			if c.wrong < 10 || l.Count > 1000 {
				c.t.Logf("%s %s: from %#x to %#x, %d times: not an edge (block %d, next %d)", filepath.Base(l.Module), l.Function, from, to, l.Count, b, next)
			}
			c.wrong += l.Count
			continue
		}
		c.right += l.Count
	}
}

func (c *checker) call(l vpmu.EdgeLine) {
	g, bias := c.graph(l.SiteModule, l.SiteOffset)
	if g == nil {
		return
	}
	c.calls++
	i := slices.IndexFunc(g.Calls, func(k Call) bool { return k.Site == l.SiteOffset+bias })
	switch {
	case i < 0:
		c.t.Logf("%s %s: call at %#x is not known", l.SiteModule, l.Caller, l.SiteOffset)
	case g.Calls[i].NoReturn && l.Calls > 1:
		c.t.Logf("%s %s: call at %#x of %s was made %g times, but is said never to return", l.SiteModule, l.Caller, l.SiteOffset, l.Callee, l.Calls)
	case g.Trusted() && !g.Blocks[g.Calls[i].Block].Reached:
		c.t.Logf("%s %s: call at %#x is in a block that is not reached", l.SiteModule, l.Caller, l.SiteOffset)
	default:
		return
	}
	c.unknown++
}

// noBranch: the block ends because another begins.
func noBranch(k x86.Control) bool { return k == x86.Next || k == x86.Call || k == x86.IndirectCall }
