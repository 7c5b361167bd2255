package formats

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

func folded(t *testing.T, p *Profile) string {
	t.Helper()
	w, err := Lookup("stacks", "folded")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := w(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFolded(t *testing.T) {
	pr := newProgram(t)
	p := pr.profile()
	kernel := pr.store.Image(image.Key{Kind: image.Kernel, Path: "[kernel.kallsyms]"})
	nowhere := pr.store.Loc(image.Addr{Offset: 0x1234})
	inKernel := pr.store.Loc(image.Addr{Image: kernel, Offset: 5})
	add := func(comm string, samples int64, calls float64, frames ...image.Loc) {
		p.Stacks.Add(graph.Label{Comm: comm}, frames, graph.Values{Samples: samples, Calls: calls})
	}
	add("a b", 1, 2.5, pr.ip("leaf", 4), pr.ret("main", 8))
	add("a b", 2, 0.25, pr.ip("leaf", 6), pr.ret("main", 9)) // other addresses, the same names
	add("a b", 3, 1, pr.ip("leaf_more", 4), pr.ret("main", 8))
	add("a b", 4, 1e15, pr.ip("main", 8))
	add("a b", 5, 0, inKernel, pr.ip("leaf", 2), pr.ret("main", 8), nowhere)
	add("a b", 6, 1.0/3)
	add("a", 7, 1e-9, pr.ip("leaf", 1))

	want := `a;leaf 0.000000001
a_b 0.33333334
a_b;[unknown];main;leaf;[[kernel.kallsyms]]_[k] 0
a_b;main 1000000000000000
a_b;main;leaf 2.75
a_b;main;leaf_more 1
`
	if got := folded(t, p); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	p.Method = "none"
	want = `a;leaf 7
a_b 6
a_b;[unknown];main;leaf;[[kernel.kallsyms]]_[k] 5
a_b;main 4
a_b;main;leaf 3
a_b;main;leaf_more 3
`
	if got := folded(t, p); got != want {
		t.Errorf("method none: got\n%swant\n%s", got, want)
	}
}

// Against the straightforward way: a map of lines, sorted. Names that are
// prefixes of each other followed by characters below and above ';' sort
// differently alone and in lines.
func TestFoldedOrderAndSums(t *testing.T) {
	names := []string{"a", "a.b", "a:b", "ab", "b", "a;"[:1] + "!", "<x>", "", "ä"}
	r := rand.New(rand.NewPCG(1, 1))
	for range 30 {
		l := newFoldedLines(image.NewStore(image.Options{}), false)
		var values []float64
		want := map[string]float64{}
		for range 300 {
			n := r.IntN(5)
			path := make([]string, n+1)
			ids := make([]uint32, n+1)
			for i := range path {
				path[i] = names[r.IntN(len(names))]
				ids[i] = l.frames.id(path[i])
			}
			v := float64(r.IntN(100))
			l.addNames(ids)
			values = append(values, v)
			want[strings.Join(path, ";")] += v
		}
		var lines []string
		for k := range want {
			lines = append(lines, k)
		}
		slices.Sort(lines)
		for i, k := range lines {
			lines[i] = k + " " + strconv.Itoa(int(want[k])) + "\n"
		}
		var b bytes.Buffer
		if err := l.write(&b, func(i uint32) float64 { return values[i] }); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != strings.Join(lines, "") {
			t.Fatalf("got\n%swant\n%s", got, strings.Join(lines, ""))
		}
	}
}

type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, fmt.Errorf("no space left")
	}
	return len(b), nil
}

func TestWritersReportErrors(t *testing.T) {
	pr := newProgram(t)
	p := pr.profile()
	for i := range 20000 {
		p.Stacks.Add(graph.Label{Comm: fmt.Sprint("thread", i)}, []image.Loc{pr.ip("leaf", uint64(i)*7919%65536)}, graph.Values{Samples: 1, Calls: 1})
		p.DCG.Add(graph.Edge{
			Site:   image.Addr{Image: pr.image, Offset: uint64(i)},
			Callee: image.Addr{Image: pr.image, Offset: uint64(i) * 7919 % 65536},
		}, graph.EdgeValues{Samples: 1})
	}
	for _, k := range writers {
		if err := k.write(&fullDisk{1 << 10}, p); err == nil {
			t.Errorf("%s, %s: no error from a full disk", k.graph, k.format)
		}
	}
	if _, err := Lookup("stacks", "jsonl"); err == nil || !strings.Contains(err.Error(), "pprof, folded") {
		t.Errorf("error %v does not list the formats", err)
	}
	if _, err := Lookup("trees", "pprof"); err == nil || !strings.Contains(err.Error(), "stacks, dcg") {
		t.Errorf("error %v does not list the graphs", err)
	}
}
