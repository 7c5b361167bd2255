package session

import (
	"encoding/binary"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// trimmed is a recording with large stack dumps as if it had been made with
// callchains by frame pointers and dump bytes of stack; without registers if
// that is 0. Chains that were not recorded are made as the kernel does.
type trimmed struct {
	*perfdata.Reader
	dump int
}

func (s trimmed) Records() iter.Seq2[perfdata.Record, error] {
	return func(yield func(perfdata.Record, error) bool) {
		for r, err := range s.Reader.Records() {
			if smp, ok := r.(*perfdata.Sample); ok {
				smp.Callchain = kernelChain(smp)
				smp.StackUser = smp.StackUser[:min(s.dump, len(smp.StackUser))]
				smp.StackUserMax = uint64(s.dump)
				if s.dump == 0 {
					smp.RegsUser = perfdata.Regs{}
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// kernelChain follows frame pointers as arch/x86/events/core.c,
// perf_callchain_user, does.
func kernelChain(s *perfdata.Sample) []uint64 {
	if len(s.Callchain) > 0 || len(s.StackUser) == 0 {
		return s.Callchain
	}
	const bp, sp, ip = 6, 7, 8 // uapi/asm/perf_regs.h
	at, _ := s.RegsUser.Get(ip)
	fp, _ := s.RegsUser.Get(bp)
	base, _ := s.RegsUser.Get(sp)
	chain := []uint64{perfdata.ContextUser, at}
	for len(chain) < 128 && fp >= base && fp-base <= uint64(len(s.StackUser))-16 {
		record := s.StackUser[fp-base:]
		chain = append(chain, binary.LittleEndian.Uint64(record[8:]))
		fp = binary.LittleEndian.Uint64(record)
	}
	return chain
}

// caller is the frame next to the leaf.
type caller struct {
	leaf     string // function
	ret      string // place
	function string // ret is in
	outcome  unwind.Outcome
	repaired int
}

// callersOf returns the leaf's caller in every sample of a recording.
func callersOf(t *testing.T, src Source, prepare func(*Session)) ([]caller, *Stats) {
	t.Helper()
	store := image.NewStore(image.Options{SameHost: true})
	s := New(src, store)
	prepare(s)
	name := func(l image.Loc) string {
		if f := store.Function(l); f != nil {
			return fmt.Sprintf("%s %s+%#x", f.Image.Name(), f.System, f.Entry)
		}
		return store.Addr(l).Image.Name()
	}
	var all []caller
	each(t, s, func(smp *Sample) {
		c := caller{leaf: name(smp.Stack[0]), outcome: smp.Outcome, repaired: smp.Repaired}
		if len(smp.Stack) > 1 {
			a := store.Addr(smp.Stack[1])
			c.ret, c.function = fmt.Sprintf("%s+%#x", a.Image.Path, a.Offset), name(smp.Stack[1])
		}
		all = append(all, c)
	})
	return all, s.Stats()
}

// shares compares the callers of leaves with those of full unwinding: the
// percentage of samples in which the function is right, and the call in it.
func shares(t *testing.T, got, full []caller, wrong map[string]int) (function, call float64) {
	t.Helper()
	if len(got) != len(full) {
		t.Fatalf("%d samples, %d", len(got), len(full))
	}
	n, f, c := 0, 0, 0
	for i := range full {
		if full[i].outcome != unwind.EndOfStack || full[i].ret == "" {
			continue
		}
		n++
		if got[i].ret == full[i].ret {
			c++
		}
		if got[i].function == full[i].function {
			f++
		} else if wrong != nil {
			wrong[fmt.Sprintf("%s: caller %q, true %s, %d put back", got[i].leaf, got[i].function, full[i].function, got[i].repaired)]++
		}
	}
	return 100 * float64(f) / float64(max(1, n)), 100 * float64(c) / float64(max(1, n))
}

// mending is how often the leaf's caller is the right function, in percent.
type mending struct {
	samples            int
	chain, dump, code  float64
	codeCall, dumpCall float64 // the right call in it
}

// measureMend compares in a recording of a program with frame pointers.
func measureMend(t *testing.T, path string) (m mending) {
	t.Helper()
	open := func() *perfdata.Reader {
		r, err := perfdata.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	as := func(*Session) {}
	full, _ := callersOf(t, open(), as)
	small, hybrid := callersOf(t, trimmed{open(), 512}, as)
	bare, _ := callersOf(t, trimmed{open(), 0}, (*Session).LeaveChains)
	mended, st := callersOf(t, trimmed{open(), 0}, as)
	m.samples = len(full)
	m.chain, _ = shares(t, bare, full, nil)
	m.dump, m.dumpCall = shares(t, small, full, nil)
	wrong := map[string]int{}
	m.code, m.codeCall = shares(t, mended, full, wrong)
	t.Logf("%s: %d samples; caller of the leaf right (and the call in it): chain %.1f %%; with 512 bytes of stack %.1f (%.1f) %%, %d repaired; by the code alone %.1f (%.1f) %%, %d mended, %d not",
		filepath.Base(path), len(full), m.chain, m.dump, m.dumpCall, hybrid.Repaired, m.code, m.codeCall, st.Mended, st.Unmended)
	if hybrid.Mended != 0 || st.Mended != st.Repaired || st.PutBack < st.Repaired {
		t.Errorf("%+v, %+v", hybrid, st)
	}
	if os.Getenv("PERFCORRECT_SHOW") != "" {
		for w, n := range wrong {
			if n*500 > len(full) {
				t.Log(n, w)
			}
		}
	}
	return m
}

// TestMend: the caller of the leaf must be right in 99 % of the samples with
// 512 bytes of stack, and in 85 % with nothing but the code.
func TestMend(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "shrink")
	out, err := exec.Command("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-o", program, "../unwind/testdata/shrink.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := measureMend(t, recordIn(t, dir, "cpu-clock:u", "dwarf,16384", []string{program, "15000"}))
	if m.samples < 100 || m.chain > 90 {
		t.Errorf("%d samples, %.1f %% right in chains: the test shows nothing", m.samples, m.chain)
	}
	if m.dump < 99 || m.code < 85 {
		t.Errorf("%.1f %% right with 512 bytes of stack, %.1f %% by the code alone", m.dump, m.code)
	}
}

// exact is a recording with the callchains of full unwinding, which lack nothing.
type exact struct {
	*perfdata.Reader
	chains [][]uint64
}

func (s exact) Records() iter.Seq2[perfdata.Record, error] {
	return func(yield func(perfdata.Record, error) bool) {
		n := 0
		for r, err := range s.Reader.Records() {
			if smp, ok := r.(*perfdata.Sample); ok {
				smp.Callchain, smp.StackUser = s.chains[n], nil
				n++
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// TestMendLeavesExactChains: chains that lack nothing stay as they are, also
// those of a program and libraries without frame pointers.
func TestMendLeavesExactChains(t *testing.T) {
	dir := t.TempDir()
	workloadInputs(t, dir)
	data := recordIn(t, dir, "cpu-clock:u", "dwarf,16384", workloads[0].args)
	var e exact
	s, _ := openSession(t, data)
	each(t, s, func(*Sample) {
		chain := []uint64{perfdata.ContextUser}
		for _, f := range s.frames {
			chain = append(chain, f.Addr)
		}
		e.chains = append(e.chains, chain)
	})
	r, err := perfdata.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e.Reader = r
	_, st := callersOf(t, e, func(*Session) {})
	t.Logf("%d samples, %d mended", len(e.chains), st.Mended)
	if len(e.chains) < 100 || st.Mended*200 > uint64(len(e.chains)) {
		t.Errorf("%d of %d samples changed", st.Mended, len(e.chains))
	}
}

// TestMendRecordings measures recordings of programs with frame pointers that
// hold large stack dumps (perf record --call-graph dwarf,65528, or perfcorrect
// record --stack-dump 32768).
func TestMendRecordings(t *testing.T) {
	pattern := os.Getenv("PERFCORRECT_FP_RECORDINGS")
	if pattern == "" {
		t.Skip("set PERFCORRECT_FP_RECORDINGS to a pattern of recordings of programs with frame pointers")
	}
	files, _ := filepath.Glob(pattern)
	for _, f := range files {
		measureMend(t, f)
	}
}
