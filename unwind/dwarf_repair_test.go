package unwind

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// record runs perf record on a command and returns the recording.
func record(tb testing.TB, name string, args ...string) string {
	data := filepath.Join(tb.TempDir(), name+".data")
	cmd := exec.Command("perf", append([]string{"record", "-q", "-e", "cpu-clock:u", "-F", "2000", "-o", data}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return data
}

func compileC(tb testing.TB, src string, flags ...string) string {
	out := filepath.Join(tb.TempDir(), "prog")
	cmd := exec.Command("gcc", append(flags, "-o", out, filepath.Join("testdata", src))...)
	if msg, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %v\n%s", cmd, err, msg)
	}
	return out
}

// kernelChain makes the callchain the kernel would have taken by frame
// pointers (arch/x86/events/core.c, perf_callchain_user).
func kernelChain(s *perfdata.Sample) []Frame {
	a := archX86
	var regs registers
	regs.load(a, &s.RegsUser)
	frames := []Frame{{Addr: regs.v[a.pc], Mode: ModeUser}}
	word := func(addr uint64) (uint64, bool) {
		off := addr - regs.v[a.sp]
		if off > uint64(len(s.StackUser)) || uint64(len(s.StackUser))-off < 8 {
			return 0, false
		}
		return binary.LittleEndian.Uint64(s.StackUser[off:]), true
	}
	for fp := regs.v[a.fp]; len(frames) < 127; {
		next, ok1 := word(fp)
		ra, ok2 := word(fp + 8)
		if !ok1 || !ok2 || ra < 0x1000 {
			break
		}
		frames = append(frames, Frame{Addr: ra, Return: true, Mode: ModeUser})
		fp = next
	}
	return frames
}

// repairs is how chains by frame pointer compare to full unwinding.
type repairs struct {
	samples, full, before, after int // full: with a caller by full unwinding; before, after: the leaf's caller equals it
	whole                        int // no frame of the chain is wrong or missing, up to where it ends
	wrong                        []string
}

func (r *repairs) String() string {
	p := func(n int) float64 { return 100 * float64(n) / float64(max(1, r.full)) }
	return fmt.Sprintf("%d samples: caller of the leaf right in %.2f %% as the kernel has it, in %.2f %% when repaired; no frame wrong in %.2f %%",
		r.full, p(r.before), p(r.after), p(r.whole))
}

// measureRepair compares, in a recording with large stack dumps, chains by
// frame pointer repaired with the first dump bytes to full unwinding.
func measureRepair(tb testing.TB, data string, dump int) (*repairs, DWARFStats) {
	res := &repairs{}
	full, small := NewUnwinder("x86_64"), NewUnwinder("x86_64")
	var frames []Frame
	caller := func(f []Frame) uint64 {
		if len(f) < 2 {
			return 0
		}
		return f[1].Addr
	}
	forSamples(tb, data, func(r *perfdata.Reader, w *world, s *perfdata.Sample) {
		space := w.space(s.PID)
		var o Outcome
		res.samples++
		frames, o = full.User(frames[:0], s, space)
		if len(frames) < 2 || o != EndOfStack {
			return
		}
		res.full++
		chain := kernelChain(s)
		if caller(chain) == caller(frames) {
			res.before++
		}
		cut := *s
		cut.StackUser, cut.StackUserMax = s.StackUser[:min(dump, len(s.StackUser))], uint64(dump)
		got, _, _ := small.Repair(slices.Clone(chain), 0, EndOfStack, &cut, space)
		if len(got) > 1 && slices.Equal(got, frames[:min(len(got), len(frames))]) {
			res.whole++
		}
		if caller(got) == caller(frames) {
			res.after++
		} else if len(res.wrong) < 10 {
			res.wrong = append(res.wrong, fmt.Sprintf("kernel %s\nrepaired %s\nfull %s", names(space, chain), names(space, got), names(space, frames)))
		}
	})
	return res, small.Stats
}

func names(space *testSpace, frames []Frame) (s string) {
	for _, f := range frames[:min(len(frames), 6)] {
		s += perfFrame(space, f) + ", "
	}
	return s
}

// TestRepair: with 512 bytes of stack the leaf's caller must be right in 99 %
// of the samples of a program with frame pointers, calling a libc without.
func TestRepair(t *testing.T) {
	prog := compileC(t, "shrink.c", "-O2", "-fno-omit-frame-pointer")
	data := record(t, "shrink", "--call-graph", "dwarf,16384", prog, "6000")
	for _, dump := range []int{64, 256, 512} {
		res, stats := measureRepair(t, data, dump)
		t.Logf("%d bytes: %v; %d stacks repaired, %d frames put back, %d entries dropped", dump, res, stats.Repaired, stats.PutBack, stats.Dropped)
		if res.full < 50 {
			t.Errorf("only %d samples", res.full)
		}
		if dump < 512 {
			continue
		}
		if res.before == res.full {
			t.Error("the kernel's chains lack nothing: the test shows nothing")
		}
		if float64(res.after) < 0.99*float64(res.full) {
			t.Errorf("caller right in %d of %d samples", res.after, res.full)
			for _, w := range res.wrong {
				t.Log(w)
			}
		}
	}
}

// TestRepairRecordings measures the recordings named by
// PERFCORRECT_FP_RECORDINGS, made of programs with frame pointers by
// perf record --call-graph dwarf,65528 or the like.
func TestRepairRecordings(t *testing.T) {
	pattern := os.Getenv("PERFCORRECT_FP_RECORDINGS")
	if pattern == "" {
		t.Skip("set PERFCORRECT_FP_RECORDINGS to a pattern of recordings of programs with frame pointers")
	}
	files, _ := filepath.Glob(pattern)
	for _, f := range files {
		for _, dump := range []int{64, 128, 256, 512, 1024} {
			res, _ := measureRepair(t, f, dump)
			t.Logf("%s, %d bytes: %v", filepath.Base(f), dump, res)
			if dump == 512 {
				for _, w := range res.wrong {
					t.Log(w)
				}
			}
		}
	}
}
