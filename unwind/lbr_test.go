package unwind

import (
	"slices"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

var callStackEvent = &perfdata.Event{Attr: perfdata.Attr{BranchSampleType: perfdata.BranchUser | perfdata.BranchCallStack | perfdata.BranchHWIndex}}

// calling is a sample at ip whose call stack are calls named by numbers, the
// newest first and in register index.
func calling(ip, index uint64, calls ...uint64) *perfdata.Sample {
	s := &perfdata.Sample{IP: ip, BranchHWIndex: index, Callchain: []uint64{perfdata.ContextUser, ip, 0x99999}}
	s.Event, s.Misc, s.Has = callStackEvent, perfdata.MiscUser, perfdata.FieldIP|perfdata.FieldCallchain
	for _, n := range calls {
		s.Branches = append(s.Branches, perfdata.Branch{From: 0x10000 * n, To: 0x10000*n + 0x100})
	}
	return s
}

// expectCalls gives samples of one thread to a CallStack of 4 registers and
// compares the numbers of the calls.
func expectCalls(t *testing.T, samples []*perfdata.Sample, want [][]uint64, cut []bool) {
	t.Helper()
	var c CallStack
	for i, s := range samples {
		frames, o := c.Frames(nil, s, 4)
		var got []uint64
		for _, f := range frames[1:] {
			if f.Return || f.Mode != ModeUser {
				t.Errorf("sample %d: %+v", i, f)
			}
			got = append(got, f.Addr/0x10000)
		}
		if frames[0] != (Frame{Addr: s.IP, Mode: ModeUser}) || !slices.Equal(got, want[i]) || (o == Truncated) != cut[i] {
			t.Errorf("sample %d: %v, %v; want %v", i, frames, o, want[i])
		}
		if n := c.Stitched(); n != len(want[i])-len(s.Branches) {
			t.Errorf("sample %d: %d stitched", i, n)
		}
	}
}

// TestStitch: calls 1 to 6 one within the other, in registers 0, 1, 2, 3, 0, 1.
// The fifth is written over the first, which the sample before still had.
func TestStitch(t *testing.T) {
	expectCalls(t, []*perfdata.Sample{
		calling(0x500, 2, 3, 2, 1),
		calling(0x500, 0, 5, 4, 3, 2),
		calling(0x500, 1, 6, 5, 4, 3),
		calling(0x500, 0, 5, 4, 3),    // 6 has returned; 2 is lost, but was there
		calling(0x500, 1, 7, 5, 4, 3), // another call in the register of 6
	}, [][]uint64{{3, 2, 1}, {5, 4, 3, 2, 1}, {6, 5, 4, 3, 2, 1}, {5, 4, 3, 2, 1}, {7, 5, 4, 3, 2, 1}}, make([]bool, 5))
}

// TestStitchNothing: the base of the second sample is another call, or one in
// another register, or one the sample before did not have.
func TestStitchNothing(t *testing.T) {
	for _, second := range []*perfdata.Sample{
		calling(0x500, 0, 5, 4, 3, 8),
		calling(0x500, 1, 5, 4, 3, 2),
		calling(0x500, 3, 8, 7, 6, 5),
	} {
		want := []uint64{}
		for _, b := range second.Branches {
			want = append(want, b.From/0x10000)
		}
		expectCalls(t, []*perfdata.Sample{calling(0x500, 2, 3, 2, 1), second}, [][]uint64{{3, 2, 1}, want}, []bool{false, true})
	}
}

// TestStitchToCut: what the first sample lacks, the ones stitched to it lack.
func TestStitchToCut(t *testing.T) {
	expectCalls(t, []*perfdata.Sample{calling(0x500, 0, 5, 4, 3, 2), calling(0x500, 1, 6, 5, 4, 3), calling(0x500, 3, 4, 3)},
		[][]uint64{{5, 4, 3, 2}, {6, 5, 4, 3, 2}, {4, 3, 2}}, []bool{true, true, true})
}

// TestCallStackUnknownSize: without the number of registers nothing is stitched
// and nothing known to be cut.
func TestCallStackUnknownSize(t *testing.T) {
	var c CallStack
	c.Frames(nil, calling(0x500, 2, 3, 2, 1), 0)
	if f, o := c.Frames(nil, calling(0x500, 0, 5, 4, 3, 2), 0); len(f) != 5 || o != EndOfStack {
		t.Errorf("%v, %v", f, o)
	}
}

// TestCallStackUnderKernel: kernel frames, the user ip, calls. A thread without
// a user part has no calls.
func TestCallStackUnderKernel(t *testing.T) {
	s := calling(0x500, 2, 3, 2, 1)
	s.Misc, s.IP = perfdata.MiscKernel, 0xffffffff81000010
	s.Callchain = []uint64{perfdata.ContextKernel, s.IP, 0xffffffff81000020, perfdata.ContextUser, 0x500, 0x77}
	var c CallStack
	f, o := c.Frames(nil, s, 4)
	want := []Frame{
		{Addr: s.IP, Mode: ModeKernel}, {Addr: 0xffffffff81000020, Mode: ModeKernel, Return: true}, {Addr: 0x500, Mode: ModeUser},
		{Addr: 0x30000, Mode: ModeUser}, {Addr: 0x20000, Mode: ModeUser}, {Addr: 0x10000, Mode: ModeUser},
	}
	if !slices.Equal(f, want) || o != EndOfStack {
		t.Errorf("%v, %v", f, o)
	}
	s.Callchain = s.Callchain[:3]
	if f, _ := c.Frames(nil, s, 4); !slices.Equal(f, want[:2]) {
		t.Errorf("without a user part: %v", f)
	}
}

// TestCallStackBounded: recordings that stitch for ever do not grow for ever.
func TestCallStackBounded(t *testing.T) {
	var c CallStack
	for i := range uint64(5000) {
		s := calling(0x500, (i+2)%4, i+3, i+2, i+1)
		if f, _ := c.Frames(nil, s, 4); len(f) > maxStitched+1 {
			t.Fatalf("%d frames", len(f))
		}
	}
	if c.Stitched() != maxStitched-3 {
		t.Errorf("%d stitched", c.Stitched())
	}
}
