package unwind

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// TestUnwindEqualsPerf: our stacks are those of libunwind, frame for frame.
func TestUnwindEqualsPerf(t *testing.T) {
	cpp := filepath.Join(t.TempDir(), "throw")
	if msg, err := exec.Command("g++", "-O2", "-pthread", "-o", cpp, "testdata/throw.cc").CombinedOutput(); err != nil {
		t.Fatalf("g++: %v\n%s", err, msg)
	}
	for _, test := range []struct {
		name string
		cmd  []string
	}{
		{"c", []string{compileC(t, "shrink.c", "-O2"), "1500"}},
		{"c++", []string{cpp}},
		{"gzip", []string{"gzip", "-9", "-c", "/usr/bin/perf"}},
		{"bash", []string{"bash", "-c", "f() { if (($1 < 2)); then r=1; else f $(($1-1)); local a=$r; f $(($1-2)); r=$((a+r)); fi; }; f 15; f 15"}},
	} {
		data := record(t, test.name, append([]string{"--call-graph", "dwarf,32768"}, test.cmd...)...)
		c := compareWithPerf(t, data)
		t.Logf("%s: %v", test.name, c)
		if c.samples < 20 {
			t.Errorf("%s: only %d samples", test.name, c.samples)
		}
		// libunwind cannot read the last word of a dump, and has to give up a
		// frame earlier then: such stacks may be longer here.
		if c.equal+c.longer < c.samples*99/100 || c.equal < c.samples*9/10 {
			t.Errorf("%s: %.2f %% equal", test.name, c.share())
			for _, d := range c.differing {
				t.Log(d)
			}
		}
	}
}

// functions names the frames of a stack in one file.
func functions(t *testing.T, path string) func(off uint64) string {
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	src := &elfSource{progs: f.Progs}
	return func(off uint64) string {
		v := src.vaddr(off)
		for _, s := range syms {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && v >= s.Value && v < s.Value+s.Size {
				return s.Name
			}
		}
		return "?"
	}
}

// TestSignals: below a signal handler is code that was interrupted, whose
// address is no return address, also where the handler has its own stack.
// perf script takes it for one.
func TestSignals(t *testing.T) {
	prog := compileC(t, "signal.c", "-O1", "-fno-optimize-sibling-calls")
	name := functions(t, prog)
	for _, arg := range []string{"", "altstack"} {
		data := record(t, "signal"+arg, strings.Fields("--call-graph dwarf,16384 "+prog+" "+arg)...)
		u := NewUnwinder("x86_64")
		total, good := 0, 0
		stacks := map[string]int{}
		forSamples(t, data, func(r *perfdata.Reader, w *world, s *perfdata.Sample) {
			frames, o := u.User(nil, s, w.space(s.PID))
			var got []string
			var exact []bool
			for _, f := range frames {
				a := f.Addr
				if f.Return {
					a--
				}
				if m := w.space(s.PID).find(a); m != nil && m.name == prog {
					got = append(got, name(a-m.start+m.pgoff))
				} else {
					got = append(got, "libc")
				}
				exact = append(exact, !f.Return)
			}
			if len(got) < 2 || got[0] != "work" {
				return
			}
			total++
			line := strings.Join(got, " ") + ": " + o.String()
			stacks[line]++
			if arg == "" && strings.HasPrefix(line, "work handler libc interrupted main libc libc _start: end of stack") && exact[2] && exact[3] && !exact[1] && !exact[4] {
				good++
			}
			if arg != "" && strings.HasPrefix(line, "work handler libc interrupted") && exact[3] && o != EndOfStack {
				good++ // the interrupted stack was not copied
			}
		})
		if total < 10 || good < total*9/10 {
			t.Errorf("%q: %d of %d as expected: %v", arg, good, total, stacks)
		}
	}
}

// TestGo: stacks of goroutines end in runtime.goexit, whatever the memory
// above holds; stacks of the runtime on the thread's stack are known to be cut.
func TestGo(t *testing.T) {
	prog := filepath.Join(t.TempDir(), "goprog")
	if msg, err := exec.Command("go", "build", "-o", prog, "testdata/goprog/main.go").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	name := functions(t, prog)
	data := record(t, "go", "--call-graph", "dwarf,16384", prog)
	u := NewUnwinder("x86_64")
	total, bad := 0, 0
	ends := map[string]int{}
	forSamples(t, data, func(r *perfdata.Reader, w *world, s *perfdata.Sample) {
		space := w.space(s.PID)
		frames, o := u.User(nil, s, space)
		fn := func(f Frame) string {
			m := space.find(f.Addr - 1)
			if m == nil {
				return "?"
			}
			return name(f.Addr - 1 - m.start + m.pgoff)
		}
		total++
		last := fn(frames[len(frames)-1])
		ends[last+": "+o.String()]++
		switch {
		case o == EndOfStack:
			if len(frames) > 1 && last != "runtime.goexit.abi0" && last != "runtime.mcall" && last != "runtime.morestack.abi0" &&
				last != "runtime.systemstack.abi0" && last != "runtime.clone.abi0" && last != "runtime.mstart.abi0" && last != "runtime.rt0_go.abi0" && last != "_rt0_amd64_linux" {
				bad++
			}
		case o != DumpTooShort:
			bad++
		}
		for _, f := range frames[:len(frames)-1] {
			if fn(f) == "runtime.goexit.abi0" {
				bad++
			}
		}
	})
	t.Logf("%d samples: %v", total, ends)
	if total < 50 || bad > total/50 {
		t.Errorf("%d of %d stacks end as they should not", bad, total)
	}
}

// TestMixedChains: kernel frames come from the callchain, user frames from the
// dump, and no frame is lost or doubled where they meet.
func TestMixedChains(t *testing.T) {
	data := filepath.Join(t.TempDir(), "mixed.data")
	cmd := exec.Command("perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "--call-graph", "dwarf,16384", "-o", data,
		"dd", "if=/dev/zero", "of=/dev/null", "bs=256k", "count=20000")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	c := compareWithPerf(t, data)
	t.Log(c)
	mixed := 0
	var frames []Frame
	u := NewUnwinder("x86_64")
	forSamples(t, data, func(r *perfdata.Reader, w *world, s *perfdata.Sample) {
		frames, _ = u.Sample(frames[:0], s, w.space(s.PID))
		user := 0
		for user < len(frames) && frames[user].Mode == ModeKernel {
			user++
		}
		if user > 0 && user < len(frames) {
			mixed++
			if frames[0].Return || frames[user].Return {
				t.Error("a leaf is no return address")
			}
		}
	})
	if mixed < 20 || c.equal < c.samples*98/100 {
		t.Errorf("%d mixed chains, %.2f %% equal", mixed, c.share())
		for _, d := range c.differing {
			t.Log(d)
		}
	}
}
