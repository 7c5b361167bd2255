package session

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// Stacks unwound from registers and stack dumps are compared with those of
// perf script, which has libunwind or libdw do it, frame for frame: the place
// in the file, and the name.

// A workload is a program of Debian, built without frame pointers. It is run
// in a folder with the files of workloadInputs.
type workload struct {
	name string
	args []string
}

var workloads = []workload{
	{"bc", []string{"bc", "-lq", "pi.bc"}},
	{"xmllint", []string{"xmllint", "--noout", "--xpath", "count(//book[@lang='w7']/chapter[@pages > 100])", "library.xml"}},
	{"m4", []string{"m4", "loop.m4"}},
	{"zstd", []string{"zstd", "-q", "-12", "-T1", "-c", "text"}},
	{"nasm", []string{"nasm", "-f", "elf64", "-o", "code.o", "code.asm"}},
	{"gs", []string{"gs", "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-sDEVICE=png16m", "-r200", "-sOutputFile=/dev/null", "curves.ps"}},
	{"tclsh", []string{"tclsh", "work.tcl"}},
	{"php", []string{"php", "-n", "work.php"}},
	{"guile", []string{"guile", "--no-auto-compile", "-s", "work.scm"}},
	{"perl", []string{"perl", "work.pl"}},
	{"sqlite3", []string{"sqlite3", ":memory:", "with recursive n(i) as (select 1 union all select i+1 from n where i<400000) select count(*), sum(i), group_concat(hex(i)) like '%99%' from n group by i%7"}},
	{"bash", []string{"bash", "-c", "f() { if (($1 < 2)); then r=1; else f $(($1-1)); local a=$r; f $(($1-2)); r=$((a+r)); fi; }; f 18"}},
	{"gcc", []string{"gcc", "-O2", "-c", "-o", "/dev/null", "work.c"}},
	{"jq", []string{"jq", "-n", "[range(80000)|{a:.,b:(.%17|tostring)}]|group_by(.b)|map({k:.[0].b,n:length})"}},
}

// workloadInputs writes what the workloads read.
func workloadInputs(t *testing.T, dir string) {
	t.Helper()
	x := uint32(1)
	random := func(n uint32) uint32 {
		x = x*1664525 + 1013904223
		return x >> 8 % n
	}
	var text, xml, asm, c strings.Builder
	for i := range 250 {
		fmt.Fprintf(&c, "int f%d(int *a, int n) { int s = %d; for (int i = 0; i < n; i++) { if (a[i] %% %d) s += a[i] * %d; else s ^= f%d(a + 1, i); switch (s & 7) { case 1: s += 3; break; case 5: s *= n; } } return s; }\n", i, random(99), 2+random(9), random(99), random(uint32(i+1)))
	}
	for range 200000 {
		fmt.Fprintf(&text, "w%d lorem%d ipsum\n", random(5000), random(77))
	}
	xml.WriteString("<library>\n")
	for i := range 60000 {
		fmt.Fprintf(&xml, "<book id='b%d' lang='w%d'><title>A &amp; %d</title><chapter pages='%d'>x</chapter></book>\n", i, random(20), random(999), random(300))
	}
	xml.WriteString("</library>\n")
	asm.WriteString("bits 64\nsection .text\n%macro bump 2\n add %1, %2\n xor %1, 0x55\n%endmacro\n")
	for i := range 8000 {
		fmt.Fprintf(&asm, "f%d:\n mov rax, [rbx+rcx*4+%d]\n bump rdx, %d\n.l: cmp rax, rdi\n jne .l\n lea rsi, [rel f%d]\n ret\n", i, random(4096), random(100), random(uint32(i+1)))
	}
	files := map[string]string{
		"work.c": c.String(), "text": text.String(), "library.xml": xml.String(), "code.asm": asm.String(),
		"pi.bc":   "define f(n) { if (n < 2) return n; return f(n-1) + f(n-2); }\nf(20)\nscale=900\n4*a(1)\nquit\n",
		"loop.m4": "define(`fib', `ifelse(eval($1 < 2), 1, $1, `eval(fib(decr($1)) + fib(eval($1 - 2)))')')fib(19)\n",
		"curves.ps": `/f { /n exch def 0 1 n { /i exch def newpath i 300 moveto i 2 mul i sin 100 mul 200 add 400 i 300 600 curveto stroke } for } def
1 1 12 { pop 500 f } for /Helvetica findfont 12 scalefont setfont 1 1 400 { dup 600 exch sub 50 exch moveto 20 string cvs show } for showpage
`,
		"work.tcl": "proc fib n { if {$n < 2} {return $n}; expr {[fib [expr {$n-1}]] + [fib [expr {$n-2}]]} }\nfib 23\nfor {set i 0} {$i < 60000} {incr i} { lappend l [format %x [expr {$i*7919 % 100003}]]; regsub a $i b x }\nputs [llength [lsort $l]]\n",
		"work.php": "<?php function f($n){return $n<2?$n:f($n-1)+f($n-2);} echo f(28); $a=[]; for($i=0;$i<300000;$i++)$a[]=md5($i); usort($a,fn($x,$y)=>strcmp($x,$y)); preg_match_all('/a+b/',join($a));",
		"work.scm": "(define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2)))))(display (f 27))(display (length (sort (map (lambda (i) (modulo (* i 7919) 100003)) (iota 200000)) <)))",
		"work.pl":  "my %h; for (1..300000) {$h{'k'.($_%5003)} .= sprintf('%x',$_)} my $n=0; for (sort {$h{$a} cmp $h{$b}} keys %h) {$n++ while $h{$_}=~/(\\w)\\1/g} print $n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// recordIn runs perf record in a folder.
func recordIn(t *testing.T, dir, event, graph string, args []string) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "perf.data")
	cmd := exec.Command("perf", append([]string{"record", "-q", "-e", event, "-F", "1999", "-m", "8M", "--call-graph", graph, "-o", data, "--"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ermission") {
			t.Skipf("no right to record: %s", out)
		}
		t.Fatalf("perf record %v: %v\n%s", args, err, out)
	}
	return data
}

// named is a frame as perf script -F ip,sym,dso shows it.
type named struct{ place, name string }

var symbolFrame = regexp.MustCompile(`^\s*([0-9a-f]+) (.*) \(([^()]+|\[[^]]+\]|.* \(deleted\))\)$`)

// perfStacks yields the stacks that perf script makes of a recording.
func perfStacks(t *testing.T, data string, yield func(key string, frames []named)) {
	t.Helper()
	cmd := exec.Command("perf", "script", "--ns", "--no-inline", "--max-stack", "8000", "-i", data, "-F", "comm,tid,time,ip,sym,dso")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	head := regexp.MustCompile(`^(.*?)\s+(-?\d+)\s+(\d+)\.(\d{9}):\s*$`)
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 1<<20)
	var frames []named
	key := ""
	for sc.Scan() {
		text := sc.Text()
		if m := head.FindStringSubmatch(text); m != nil {
			key, frames = m[2]+" "+m[3]+m[4], frames[:0]
			continue
		}
		if text == "" {
			yield(key, frames)
			continue
		}
		m := symbolFrame.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("perf script printed %q", text)
		}
		if m[1] == "ffffffffffffffff" {
			continue // a return address perf could not read
		}
		frames = append(frames, named{m[1] + " " + m[3], m[2]})
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("perf script: %v", err)
	}
}

// ourStack is the stack of a sample in the same form. Frames of the kernel are
// not the unwinder's, and get no place.
func ourStack(store *image.Store, smp *Sample, dst []named) []named {
	for _, l := range smp.Stack {
		a := store.Addr(l)
		off, dso := a.Offset, a.Image.Path
		if a.Return {
			off--
		}
		n := named{fmt.Sprintf("%x %s", off, dso), "[unknown]"}
		switch a.Image.Kind {
		case image.Kernel, image.Module, image.BPF:
			n.place = ""
		case image.JIT:
			n.place = fmt.Sprintf("%x /tmp/perf-%d.map", off, a.Image.PID)
		case image.Unknown:
			n.place = fmt.Sprintf("%x [unknown]", off)
		}
		if f := store.Function(l); f != nil && f.Name != "" {
			n.name = f.Name
		}
		dst = append(dst, n)
	}
	return dst
}

// agreement is how our stacks and perf's compare.
type agreement struct {
	samples, equal, longer, shorter, other int
	frames, names                          int // in equal stacks: all, and those with perf's name
	behindCalls                            int // of the stacks that differ: ours have nothing but return addresses behind calls
	complete                               int // of these: ours end with the outermost frame
	outcomes                               [unwind.NumOutcomes]uint64
	differing                              []string
	otherNames                             map[string]int
}

func (a *agreement) share() float64 { return 100 * float64(a.equal) / float64(max(1, a.samples)) }

// compareUnwound unwinds a recording and compares with perf script.
func compareUnwound(t *testing.T, data string) *agreement {
	t.Helper()
	theirs := map[string][]named{}
	perfStacks(t, data, func(key string, frames []named) { theirs[key] = slices.Clone(frames) })
	a := &agreement{otherNames: map[string]int{}}
	s, store := openSession(t, data)
	var ours []named
	each(t, s, func(smp *Sample) {
		key := fmt.Sprintf("%d %d", smp.Thread.TID, smp.Time)
		want, ok := theirs[key]
		if !ok {
			t.Fatalf("perf script has no sample %q", key)
		}
		ours = ourStack(store, smp, ours[:0])
		a.samples++
		i := 0
		for i < len(ours) && i < len(want) && (ours[i].place == "" || ours[i].place == want[i].place) {
			i++
		}
		switch {
		case i == len(ours) && i == len(want):
			a.equal++
			a.compareNames(ours, want)
			return
		case i == len(want):
			a.longer++
		case i == len(ours):
			a.shorter++
		default:
			a.other++
		}
		if soundStack(store, smp) {
			a.behindCalls++
			if smp.Outcome == unwind.EndOfStack {
				a.complete++
			}
		}
		a.differing = append(a.differing, fmt.Sprintf("%s: %v, equal up to %d of %d\n  ours %v\n  perf %v", key, smp.Outcome, i, len(want), ours[max(0, i-1):], want[max(0, i-1):]))
	})
	a.outcomes = s.Stats().Outcomes
	return a
}

func (a *agreement) compareNames(ours, want []named) {
	for i := range ours {
		if ours[i].place == "" {
			continue
		}
		a.frames++
		if o, w := ours[i].name, want[i].name; o == w || strings.HasPrefix(w, o+"@") || strings.HasSuffix(o, "@plt") {
			a.names++
		} else {
			a.otherNames[o+" / "+w]++
		}
	}
}

// soundStack reports whether every return address stands behind a call
// instruction, as far as the code can be read.
func soundStack(store *image.Store, smp *Sample) bool {
	for _, l := range smp.Stack {
		a := store.Addr(l)
		if a.Return && a.Image.Kind == image.File && len(a.Image.Text(a.Offset, 1)) > 0 && a.Offset-store.CallSite(l).Offset == 1 {
			return false
		}
	}
	return true
}

func (a *agreement) String() string {
	var o []string
	for i, n := range a.outcomes {
		if n > 0 {
			o = append(o, fmt.Sprintf("%v %d", unwind.Outcome(i), n))
		}
	}
	return fmt.Sprintf("%d samples, %.2f %% equal; %d longer, %d shorter, %d otherwise different (ours: %d sound, %d of them complete); %d frames, %.2f %% named as by perf; %s",
		a.samples, a.share(), a.longer, a.shorter, a.other, a.behindCalls, a.complete, a.frames, 100*float64(a.names)/float64(max(1, a.frames)), strings.Join(o, ", "))
}

// TestUnwoundEqualsPerf compares two programs; with PERFCORRECT_LONG=1 all of
// workloads, with 8 and 16 KiB of stack. 99 % of the stacks must be equal, or
// go on where perf's end.
func TestUnwoundEqualsPerf(t *testing.T) {
	long := os.Getenv("PERFCORRECT_LONG") != ""
	dir := t.TempDir()
	workloadInputs(t, dir)
	list, sizes := workloads[:2], []string{"8192"}
	if long {
		list, sizes = workloads, []string{"8192", "16384"}
	}
	compared := 0
	for _, w := range list {
		if _, err := exec.LookPath(w.args[0]); err != nil {
			continue
		}
		for _, size := range sizes {
			a := compareUnwound(t, recordIn(t, dir, "cpu-clock:u", "dwarf,"+size, w.args))
			t.Logf("%s, %s bytes: %v", w.name, size, a)
			if a.samples > 50 {
				compared++
			}
			if a.equal+a.longer < a.samples*99/100 || os.Getenv("PERFCORRECT_SHOW") != "" {
				for _, d := range a.differing[:min(len(a.differing), 5)] {
					t.Log(d)
				}
			}
			if a.equal+a.longer < a.samples*99/100 {
				t.Errorf("%s: %.2f %% equal, %d longer", w.name, a.share(), a.longer)
			}
			if a.names < a.frames*98/100 {
				t.Errorf("%s: %d of %d names are perf's; others (ours / perf's): %v", w.name, a.names, a.frames, a.otherNames)
			}
		}
	}
	if compared == 0 || long && compared < 16 {
		t.Errorf("only %d recordings with samples enough", compared)
	}
}
