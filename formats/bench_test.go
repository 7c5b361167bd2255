package formats

import (
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// million makes a profile of 2^20 distinct stacks of 15 frames in 30,000
// locations of 20 images, sharing outer frames as those of real programs do.
// Addresses stay without names, so that writing is measured rather than the
// reading of ELF files: each image's frames fold into one name. BenchmarkFoldedNames has
// names.
func million() *Profile {
	p := &Profile{Store: image.NewStore(image.Options{}), Method: "density", EventName: "cycles", EventUnit: "count", Stacks: graph.NewStacks()}
	locs := make([]image.Loc, 30000)
	for i := range locs {
		im := p.Store.Image(image.Key{Path: fmt.Sprintf("/nonexistent/lib%d.so", i%20)})
		locs[i] = p.Store.Loc(image.Addr{Image: im, Offset: uint64(i) * 32, Return: i%3 != 0})
	}
	frames := make([]image.Loc, 15)
	for i := range 1 << 20 {
		for d := range frames {
			frames[d] = locs[(uint32(i>>d)*2654435761+uint32(d))>>8%30000]
		}
		frames[0], frames[1] = locs[i&0x3fff], locs[i>>14]
		p.Stacks.Add(graph.Label{Comm: "program"}, frames, graph.Values{Samples: 2, Event: 2e6, Calls: 1.5 * float64(i%100)})
	}
	return p
}

// peak runs f and returns by how much the heap grew at most, as sampled.
func peak(f func()) uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, m.HeapAlloc
	var done atomic.Bool
	end := make(chan bool)
	go func() {
		for !done.Load() {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			time.Sleep(10 * time.Millisecond)
		}
		close(end)
	}()
	f()
	done.Store(true)
	<-end
	return most - before
}

type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

func benchmark(b *testing.B, write Writer) {
	p := million()
	b.ResetTimer()
	for range b.N {
		var c counter
		grown := peak(func() {
			if err := write(&c, p); err != nil {
				b.Fatal(err)
			}
		})
		b.ReportMetric(float64(grown)/1e6, "MB-more")
		b.ReportMetric(float64(c.n)/1e6, "MB-out")
	}
}

func BenchmarkFolded(b *testing.B) { benchmark(b, writeFolded) }
func BenchmarkPprof(b *testing.B)  { benchmark(b, writeStacksPprof) }

// BenchmarkProfilePackage is what BenchmarkPprof does, by github.com/google/pprof/profile.
func BenchmarkProfilePackage(b *testing.B) {
	benchmark(b, func(w io.Writer, p *Profile) error {
		out := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cycles", Unit: "count"}, {Type: "calls", Unit: "count"}}}
		locs := make([]*profile.Location, p.Store.NumLocs())
		for st, v := range p.Stacks.All() {
			s := &profile.Sample{Value: []int64{v.Samples, int64(v.Event), int64(v.Calls)}, Location: make([]*profile.Location, len(st.Frames))}
			for i, l := range st.Frames {
				if locs[l] == nil {
					locs[l] = &profile.Location{ID: uint64(l) + 1, Address: p.Store.Addr(l).Offset}
					out.Location = append(out.Location, locs[l])
				}
				s.Location[i] = locs[l]
			}
			out.Sample = append(out.Sample, s)
		}
		return out.Write(w)
	})
}

// BenchmarkFoldedNames is folding with as many names as locations.
func BenchmarkFoldedNames(b *testing.B) {
	p := million()
	b.ResetTimer()
	for range b.N {
		var c counter
		grown := peak(func() {
			t := newFoldedLines(p.Store, p.Inline)
			for l := range p.Store.NumLocs() {
				t.frames.byLoc[0][l] = t.frames.id(fmt.Sprintf("namespace::function_%d", l)) + 2
			}
			for st := range p.Stacks.All() {
				t.add(st)
			}
			if err := t.write(&c, func(uint32) float64 { return 1 }); err != nil {
				b.Fatal(err)
			}
		})
		b.ReportMetric(float64(grown)/1e6, "MB-more")
		b.ReportMetric(float64(c.n)/1e6, "MB-out")
	}
}
