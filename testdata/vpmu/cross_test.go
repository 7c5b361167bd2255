package vpmu

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// plainCPU makes glibc choose the string functions of the emulated processor
// in valgrind, too, whose processor can do more.
const plainCPU = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX,-ERMS,-FSRM,-BMI1,-BMI2,-LZCNT,-MOVBE,-SSE4_2,-SSE4_1,-SSSE3,-RTM,-AVX_Fast_Unaligned_Load"

var long = flag.Bool("long", false, "inputs twenty times as large, and the speed table")

// input writes a deterministic text of n words.
func input(t testing.TB, dir string, n int) string {
	t.Helper()
	var b []byte
	x := uint32(1)
	for range n {
		x = x*1664525 + 1013904223
		for k := 2 + x>>29; k > 0; k-- {
			x = x*1664525 + 1013904223
			b = append(b, 'a'+byte(x>>28))
		}
		b = append(b, ' ')
	}
	return file(t, dir, "text", string(b))
}

func file(t testing.TB, dir, name, text string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return p
}

func readLines[T any](t testing.TB, path string) (lines []T) {
	t.Helper()
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
			t.Fatalf("%s: %v", path, err)
		}
		lines = append(lines, l)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

type crossCase struct {
	name  string
	args  []string
	stdin string
}

func crossCases(t testing.TB, dir string, size int) []crossCase {
	text := input(t, dir, 2000*size)
	return []crossCase{
		{"bc", []string{"bc", "-lq", file(t, dir, "pi.bc", fmt.Sprintf("scale=%d; a(1)*4; e(2)\nhalt\n", 80+2*size))}, ""},
		{"gzip", []string{"gzip", "-9", "-c"}, text},
		{"xz", []string{"xz", "-2", "-T1", "-c"}, text},
		{"sqlite3", []string{"sqlite3", ":memory:"}, file(t, dir, "q.sql", `create table t(a integer primary key, b text, c int);
with recursive n(i) as (select 1 union all select i+1 from n where i < 3000) insert into t select i, 'row ' || (i * 7919 % 1007), i % 97 from n;
create index tb on t(b);
select c, count(*), min(b), max(a) from t group by c order by 2 desc, 1 limit 5;
`)},
		{"m4", []string{"m4", file(t, dir, "t.m4", "define(`fib',`ifelse($1,0,0,$1,1,1,`eval(fib(decr($1))+fib(decr(decr($1))))')')dnl\nfib(15)\n")}, ""},
		{"lua", []string{"lua5.4", file(t, dir, "t.lua", `local t = {}
for i = 1, 5000 do t[i] = string.format("%d:%s", i, tostring(i * 7 % 1000)) end
table.sort(t)
for i = 1, #t do pcall(error, t[i]:gsub("1", "xx")) end
`)}, ""},
	}
}

func callgrind(t testing.TB, c crossCase, dir string) string {
	t.Helper()
	out := filepath.Join(dir, c.name+".callgrind")
	cmd := exec.Command("valgrind", append([]string{"-q", "--tool=callgrind", "--dump-instr=yes", "--collect-jumps=yes", "--callgrind-out-file=" + out}, c.args...)...)
	cmd.Env = append([]string{plainCPU}, DefaultEnv...)
	if c.stdin != "" {
		f, err := os.Open(c.stdin)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.Stdin = f
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("valgrind: %v", err)
	}
	return out
}

// inLoader: valgrind preloads a library of its own, and shows the processor's
// caches differently, so the dynamic linker has other things to do there.
func inLoader(module string) bool { return strings.HasPrefix(filepath.Base(module), "ld-linux") }

// calleeKey names a callee alike in both tools. Which variant of a string
// function runs depends on the processor shown: they count as one.
func calleeKey(module string, vaddr uint64, name string) string {
	if f := variant.FindStringSubmatch(name); f != nil {
		return strings.Replace(f[1], "memcpy", "memmove", 1) // one entry, two names
	}
	return fmt.Sprintf("%s+%#x", filepath.Base(module), vaddr)
}

var variant = regexp.MustCompile(`^_*(\w+?)(_chk)?_(sse2|sse42|ssse3|avx2|evex|generic|erms)(_\w+)?$`)

// TestCallgrind compares call counts, call site by call site, with a second
// tool. README.md explains what is left out and why.
func TestCallgrind(t *testing.T) {
	dir := t.TempDir()
	size := 10
	if *long {
		size = 200
	}
	for _, c := range crossCases(t, dir, size) {
		t.Run(c.name, func(t *testing.T) { cross(t, c, dir) })
	}
}

func cross(t *testing.T, c crossCase, dir string) {
	truth := filepath.Join(dir, c.name)
	_, err := Run(context.Background(), Config{
		Program: c.args, Stdin: c.stdin, Env: append([]string{plainCPU}, DefaultEnv...), TruthDir: truth, WorkDir: workDir(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	want, names, err := callgrindCalls(callgrind(t, c, dir))
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]*elfCode{}
	open := func(path string) *elfCode {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if code[path] == nil {
			var err error
			if code[path], err = openCode(path); err != nil {
				code[path] = &elfCode{}
			}
		}
		return code[path]
	}
	type edge struct {
		ob     string
		site   uint64
		callee string
	}
	got, cg, label := map[edge]float64{}, map[edge]float64{}, map[edge]string{}
	loader, jumps := 0.0, 0.0
	// Callgrind does not always see through a stub, and then gives its address
	// in memory: at such a site only the number of calls can be compared.
	stubs := map[edge]bool{}
	for k := range want {
		if len(open(k.calleeOb).bytes(k.callee, 1)) == 0 {
			stubs[edge{filepath.Base(k.siteOb), k.site, ""}] = true
		}
	}
	add := func(m map[edge]float64, e edge, n float64, name string) {
		if s := (edge{e.ob, e.site, ""}); stubs[s] {
			e = s
		}
		m[e] += n
		label[e] = name
	}
	for _, l := range readLines[EdgeLine](t, filepath.Join(truth, "dcg.jsonl")) {
		if inLoader(l.SiteModule) {
			loader += l.Calls
			continue
		}
		callee := calleeKey(l.CalleeModule, open(l.CalleeModule).vaddr(l.CalleeOffset), l.Callee)
		add(got, edge{filepath.Base(l.SiteModule), open(l.SiteModule).vaddr(l.SiteOffset), callee}, l.Calls, l.Caller+" -> "+l.Callee)
	}
	for k, n := range want {
		if inLoader(k.siteOb) {
			continue
		}
		if k.siteOb == "" || !open(k.siteOb).isCall(k.site) {
			jumps += n // a tail call: callgrind counts the jump
			continue
		}
		_, callee, _ := strings.Cut(names[k], " -> ")
		add(cg, edge{filepath.Base(k.siteOb), k.site, calleeKey(k.calleeOb, k.callee, callee)}, n, names[k])
	}
	common, all := 0.0, 0.0
	var diffs []edge
	for e := range label {
		common += math.Min(got[e], cg[e])
		all += math.Max(got[e], cg[e])
		if got[e] != cg[e] {
			diffs = append(diffs, e)
		}
	}
	sort.Slice(diffs, func(i, j int) bool {
		return math.Abs(got[diffs[i]]-cg[diffs[i]]) > math.Abs(got[diffs[j]]-cg[diffs[j]])
	})
	t.Logf("%s: %.0f calls, agreement %.4f %% by call site and callee; left out: %.0f tail jumps, %.0f calls in the dynamic linker",
		c.name, all, 100*common/all, jumps, loader)
	for i, e := range diffs {
		if i >= 12 {
			break
		}
		t.Logf("  %s %#x -> %s: %.0f, callgrind %.0f  %s", e.ob, e.site, e.callee, got[e], cg[e], label[e])
	}
	if common/all < 0.999 {
		t.Errorf("agreement %.4f %% is below 99.9", 100*common/all)
	}
}
