package unwind

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// systemPrograms are commands of Debian packages, without frame pointers. %s
// stands for a file of random text.
var systemPrograms = [][]string{
	{"bash", "-c", "f() { if (($1 < 2)); then r=1; else f $(($1-1)); local a=$r; f $(($1-2)); r=$((a+r)); fi; }; f 16"},
	{"gzip", "-9", "-c", "%s"},
	{"xz", "-T2", "-3", "-c", "%s"},
	{"zstd", "-T2", "-9", "-c", "-q", "%s"},
	{"bzip2", "-c", "%s"},
	{"sort", "%s"},
	{"mawk", "{c[$2]+=length($0); n=split($0,a,\" \"); s=s<a[1]?a[1]:s} END{for(k in c) print k,c[k],s}", "%s"},
	{"perl", "-e", "my %h; for (1..200000) {$h{'k'.($_%5003)} .= sprintf('%x',$_)} my $n=0; for (sort {$h{$a} cmp $h{$b}} keys %h) {$n++ while $h{$_}=~/(\\w)\\1/g} print $n"},
	{"objdump", "-dC", "/usr/bin/perf"},
	{"readelf", "-aW", "/usr/bin/perf"},
	{"sqlite3", ":memory:", "with recursive n(i) as (select 1 union all select i+1 from n where i<300000) select count(*), sum(i), group_concat(hex(i)) like '%99%' from n group by i%7"},
	{"lua5.4", "-e", "local function f(n) if n<2 then return n end return f(n-1)+f(n-2) end print(f(30)) local t={} for i=1,200000 do t[i]=tostring(i*7919%100003) end table.sort(t)"},
	{"openssl", "speed", "-seconds", "1", "rsa2048"},
	{"php", "-r", "function f($n){return $n<2?$n:f($n-1)+f($n-2);} echo f(27); $a=[]; for($i=0;$i<200000;$i++)$a[]=md5($i); sort($a);"},
	{"jq", "-n", "[range(50000)|{a:.,b:(.%17|tostring)}]|group_by(.b)|map({k:.[0].b,n:length})"},
}

// TestProgramsEqualPerf records the programs of the system that are installed,
// with 8 and 16 KiB of stack, and compares with perf script: 99 % of the stacks
// must be equal or go on where perf's end, and every return address of those
// that differ must stand behind a call.
func TestProgramsEqualPerf(t *testing.T) {
	if !longTests() {
		t.Skip("takes minutes: set PERFCORRECT_LONG=1")
	}
	text := filepath.Join(t.TempDir(), "text")
	f, err := os.Create(text)
	if err != nil {
		t.Fatal(err)
	}
	x := uint32(1)
	for range 300000 {
		x = x*1664525 + 1013904223
		fmt.Fprintf(f, "%d word%d lorem ipsum\n", x>>3, x>>8%977)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	programs := 0
	for _, cmd := range systemPrograms {
		if _, err := exec.LookPath(cmd[0]); err != nil {
			continue
		}
		for _, size := range []string{"8192", "16384"} {
			args := []string{"--call-graph", "dwarf," + size, cmd[0]}
			for _, a := range cmd[1:] {
				if a == "%s" {
					a = text
				}
				args = append(args, a)
			}
			c := compareWithPerf(t, record(t, cmd[0], args...))
			t.Logf("%s, %s bytes: %v", cmd[0], size, c)
			if c.samples >= 20 {
				programs++
			}
			differ := c.longer + c.shorter + c.other
			if c.equal+c.longer < c.samples*99/100 || c.oursSound < differ {
				t.Errorf("%s: %.2f %% equal, %d of %d that differ sound", cmd[0], c.share(), c.oursSound, differ)
				for _, d := range c.differing {
					t.Log(d)
				}
			}
		}
	}
	if programs < 16 {
		t.Errorf("only %d recordings with samples enough", programs)
	}
}
