package graph

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
)

type row struct {
	l Label
	f []image.Loc
	v Values
}

// randomRows makes observations with many repetitions, shared prefixes and
// whole-numbered values, whose sums are exact in any order.
func randomRows(r *rand.Rand, n int) []row {
	comms := []string{"a", "b", "a longer name"}
	rows := make([]row, n)
	for i := range rows {
		f := make([]image.Loc, r.IntN(7))
		for j := range f {
			f[j] = image.Loc(r.IntN(3))
		}
		rows[i] = row{
			Label{Comm: comms[r.IntN(3)], PID: int32(r.IntN(2))}, f,
			Values{Samples: 1 + int64(r.IntN(3)), Event: float64(r.IntN(100)), Calls: float64(r.IntN(100))},
		}
	}
	return rows
}

func build(rows []row) *Stacks {
	s := NewStacks()
	for _, r := range rows {
		s.Add(r.l, r.f, r.v)
	}
	return s
}

// contents is everything All yields, in order.
func contents(s *Stacks) []string {
	var out []string
	for st, v := range s.All() {
		out = append(out, fmt.Sprint(st.Label, st.Frames, v))
	}
	return out
}

func TestStacksAgainstMap(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(1, 2)), 20000)
	want := map[string]Values{}
	var order []string
	s := NewStacks()
	for _, r := range rows {
		k := fmt.Sprint(r.l, r.f)
		if _, ok := want[k]; !ok {
			order = append(order, k)
		}
		v := want[k]
		v.add(r.v)
		want[k] = v
		if i := s.Add(r.l, r.f, r.v); order[i] != k {
			t.Fatalf("Add returned index %d, which is %s, for %s", i, order[i], k)
		}
	}
	if s.Len() != len(want) {
		t.Fatalf("Len = %d, want %d", s.Len(), len(want))
	}
	var total Values
	i := 0
	for st, v := range s.All() {
		k := fmt.Sprint(st.Label, st.Frames)
		if k != order[i] || v != want[k] {
			t.Fatalf("stack %d: %s %v, want %s %v", i, k, v, order[i], want[order[i]])
		}
		total.add(v)
		i++
	}
	if got := s.Total(); got != total {
		t.Errorf("Total = %v, want %v", got, total)
	}
}

func TestStacksAllIsDeterministic(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(3, 4)), 5000)
	a := contents(build(rows))
	old := seed
	defer func() { seed = old }()
	seed = old*31 + 2 | 1 // as in another run of the program
	if b := contents(build(rows)); !reflect.DeepEqual(a, b) {
		t.Error("the order or values of All depend on the hash seed")
	}
}

func TestStacksMergeIsAssociative(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		rows := randomRows(r, 300)
		i := r.IntN(len(rows))
		j := i + r.IntN(len(rows)-i)
		parts := func() (a, b, c *Stacks) { return build(rows[:i]), build(rows[i:j]), build(rows[j:]) }

		a, b, c := parts()
		a.Merge(b)
		a.Merge(c)
		d, e, f := parts()
		before := contents(f)
		e.Merge(f)
		d.Merge(e)
		want := contents(build(rows))
		if !reflect.DeepEqual(contents(a), want) || !reflect.DeepEqual(contents(d), want) {
			t.Fatal("(a+b)+c, a+(b+c) and the whole differ")
		}
		if !reflect.DeepEqual(contents(f), before) {
			t.Fatal("Merge changed its argument")
		}
	}
}

func TestStacksMergeWithItselfDoubles(t *testing.T) {
	s := build(randomRows(rand.New(rand.NewPCG(7, 8)), 100))
	n, before := s.Len(), s.Total()
	s.Merge(s)
	after := s.Total()
	if s.Len() != n || after.Samples != 2*before.Samples || after.Calls != 2*before.Calls {
		t.Errorf("%d stacks %v, want %d and twice %v", s.Len(), after, n, before)
	}
}

func TestStacksMapSharesFramesButNotChanges(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(9, 10)), 1000)
	s := build(rows[:500])
	before := contents(s)
	m := s.Map(func(i int, v Values) Values { v.Calls *= 2; return v })
	if got, want := m.Total().Calls, 2*s.Total().Calls; got != want {
		t.Errorf("calls after Map: %v, want %v", got, want)
	}
	// Both go on, each with other rows; neither may see the other's.
	for _, r := range rows[500:] {
		m.Add(r.l, r.f, r.v)
	}
	if !reflect.DeepEqual(contents(s), before) {
		t.Fatal("adding to the result of Map changed the original")
	}
	mid := contents(m)
	s.Add(Label{Comm: "new"}, []image.Loc{77, 78}, Values{Samples: 1})
	s.Add(Label{Comm: "newer"}, []image.Loc{78, 79}, Values{Samples: 1})
	if !reflect.DeepEqual(contents(m), mid) {
		t.Fatal("adding to the original changed the result of Map")
	}
	if i := m.Add(Label{Comm: "newer"}, []image.Loc{5}, Values{}); i != m.Len()-1 {
		t.Errorf("a label of the original only is known to the result of Map")
	}
	if st, _ := m.At(m.Len() - 1); st.Label.Comm != "newer" {
		t.Errorf("label %q, want newer", st.Label.Comm)
	}
}

func TestStacksLongerThanAPart(t *testing.T) {
	s := NewStacks()
	big := make([]image.Loc, partSize+10)
	for i := range big {
		big[i] = image.Loc(i)
	}
	s.Add(Label{}, []image.Loc{1, 2}, Values{Samples: 1})
	s.Add(Label{}, big, Values{Samples: 2})
	s.Add(Label{}, []image.Loc{3}, Values{Samples: 3})
	s.Add(Label{}, big, Values{Samples: 4})
	for i, want := range [][]image.Loc{{1, 2}, big, {3}} {
		if st, _ := s.At(i); !reflect.DeepEqual(st.Frames, want) {
			t.Errorf("stack %d has %d frames, want %d, or others", i, len(st.Frames), len(want))
		}
	}
	if _, v := s.At(1); v.Samples != 6 {
		t.Errorf("the long stack has %d samples, want 6", v.Samples)
	}
}

func TestAddOfAKnownStackDoesNotAllocate(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(11, 12)), 1000)
	s := build(rows)
	if n := testing.AllocsPerRun(10, func() {
		for _, r := range rows {
			s.Add(r.l, r.f, r.v)
		}
	}); n != 0 {
		t.Errorf("%v allocations for 1000 known stacks", n)
	}
}

// synthetic fills buf with stack number i: 15 frames, the outer ones shared
// with its neighbours, as those of real programs are.
func synthetic(buf []image.Loc, i int) []image.Loc {
	for d := range buf {
		x := uint32(i) >> uint(d)
		buf[d] = image.Loc((x*2654435761 + uint32(d)) >> 12 & 0xffff)
	}
	buf[0] = image.Loc(i & 0xffff)
	buf[1] = image.Loc(i >> 16)
	return buf
}

func BenchmarkStacksAdd(b *testing.B) {
	const distinct = 1 << 20
	frames := make([]image.Loc, 15)
	label := Label{Comm: "program"}
	for _, bench := range []struct {
		name string
		adds int
	}{{"new", distinct}, {"new+known", 2 * distinct}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				s := NewStacks()
				for i := range bench.adds {
					s.Add(label, synthetic(frames, i*7919&(distinct-1)), Values{Samples: 1, Event: 1e6, Calls: 1})
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				if s.Len() != distinct {
					b.Fatalf("%d stacks, want %d", s.Len(), distinct)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bench.adds), "ns/add")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-held")
		})
	}
}
