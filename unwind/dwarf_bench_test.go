package unwind

import (
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// load returns copies of up to n samples of a recording, and the address
// spaces at its end.
func load(b *testing.B, data string, n int) ([]*perfdata.Sample, *world) {
	var samples []*perfdata.Sample
	var last *world
	forSamples(b, data, func(_ *perfdata.Reader, w *world, s *perfdata.Sample) {
		if len(samples) < n {
			samples = append(samples, s.Clone())
		}
		last = w
	})
	return samples, last
}

// BenchmarkUnwind unwinds samples of 16 KiB again and again: all rows are in
// the cache, as they are for nearly all frames of a recording. The target is
// 1 us a frame.
func BenchmarkUnwind(b *testing.B) {
	prog := compileC(b, "shrink.c", "-O2")
	samples, w := load(b, record(b, "shrink", "--call-graph", "dwarf,16384", prog, "3000"), 1000)
	u := NewUnwinder("x86_64")
	var frames []Frame
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range samples {
			frames, _ = u.User(frames[:0], s, w.space(s.PID))
			n += len(frames)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/frame")
	b.ReportMetric(float64(n)/float64(b.N*len(samples)), "frames/sample")
}

// BenchmarkRepair is the cost of mending a chain, 512 bytes of stack.
func BenchmarkRepair(b *testing.B) {
	prog := compileC(b, "shrink.c", "-O2", "-fno-omit-frame-pointer")
	samples, w := load(b, record(b, "shrink", "--call-graph", "dwarf,16384", prog, "3000"), 1000)
	var chains [][]Frame
	for _, s := range samples {
		chains = append(chains, kernelChain(s))
		s.StackUser, s.StackUserMax = s.StackUser[:512], 512
	}
	u := NewUnwinder("x86_64")
	var frames []Frame
	b.ReportAllocs()
	for b.Loop() {
		for i, s := range samples {
			frames, _, _ = u.Repair(append(frames[:0], chains[i]...), 0, EndOfStack, s, w.space(s.PID))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(samples)), "ns/sample")
}

// BenchmarkColdRows looks up addresses of every function of bash, each for the first time.
func BenchmarkColdRows(b *testing.B) {
	s, _ := elfSections(b, "/bin/bash")
	t := NewTable(s)
	var pcs []uint64
	for f, err := range t.entries(&t.eh) {
		if err == nil {
			pcs = append(pcs, f.start, f.end-1)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		t := NewTable(s)
		for _, pc := range pcs {
			t.Row(pc)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pcs)), "ns/row")
}
