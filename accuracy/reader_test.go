package accuracy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

func read(t *testing.T, r *Reader, text string) *Profile {
	t.Helper()
	p, err := r.Read(strings.NewReader(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const truthDCG = `{"site_module":"/usr/bin/app","site_offset":4196,"callee_module":"/usr/bin/app","callee_offset":4608,"caller":"main","callee":"f","samples":0,"calls":30,"stderr":0}
{"site_module":"/usr/bin/app","site_offset":4200,"callee_module":"/usr/bin/app","callee_offset":4608,"caller":"main","callee":"f","samples":0,"calls":10,"stderr":0}
{"site_module":"/usr/bin/app","site_offset":4700,"callee_module":"/lib/libc.so.6","callee_offset":9000,"caller":"f","callee":"memcpy","samples":0,"calls":60,"stderr":0}
`

func TestCompareCallGraphs(t *testing.T) {
	var r Reader
	truth := read(t, &r, truthDCG)
	got := read(t, &r, `{"site_module":"/build/app","site_offset":4196,"callee_module":"/build/app","callee_offset":4608,"caller":"main","callee":"f","calls":4}
{"site_module":"/build/app","site_offset":4700,"callee_module":"libc.so.6","callee_offset":9000,"caller":"f","callee":"memcpy","calls":4}
`)
	c, err := Compare(truth, got, 10)
	if err != nil {
		t.Fatal(err)
	}
	m := metrics(c)
	near(t, "call-site overlap", m["dcg_overlap"], 30+50)
	near(t, "function overlap", m["dcg_function_overlap"], 40+50)
	near(t, "hot at 0.5, truth in got", m["dcg_hot_truth_in_got_0.50"], 100)
	near(t, "hot at 0.1, truth in got", m["dcg_hot_truth_in_got_0.10"], 200.0/3)
	// Entry counters: f (40, 4), memcpy (60, 4): no correlation where one side is constant.
	near(t, "correlation", m["entry_correlation"], 0)
	want := []LostEdge{
		{"main", "app+0x1064", "f", 30, 50, 20},
		{"main", "app+0x1068", "f", 10, 0, 10},
		{"f", "app+0x125c", "memcpy", 60, 50, 10},
	}
	if len(c.Costliest) != len(want) {
		t.Fatalf("costliest edges %+v", c.Costliest)
	}
	for i, w := range want {
		if c.Costliest[i] != w {
			t.Errorf("costliest edge %d = %+v, want %+v", i, c.Costliest[i], w)
		}
	}
}

func metrics(c *Comparison) map[string]float64 {
	m := map[string]float64{}
	for _, x := range c.Metrics {
		m[x.Name] = x.Value
	}
	return m
}

// main calls f at 1 (10 times) and at 2 (30 times); f calls g at 7.
const truthRest = `{"id":0,"parent":-1,"module":"app","offset":16,"site_offset":0,"function":"main","calls":0}
{"id":1,"parent":0,"module":"app","offset":32,"site_offset":1,"function":"f","calls":10}
{"id":2,"parent":0,"module":"app","offset":32,"site_offset":2,"function":"f","calls":30}
{"id":3,"parent":1,"module":"app","offset":48,"site_offset":7,"function":"g","calls":10}
{"id":4,"parent":2,"module":"app","offset":48,"site_offset":7,"function":"g","calls":50}
{"module":"app","offset":5,"target_offset":9,"fallthrough_offset":7,"taken":3,"not_taken":1,"function":"main"}
{"module":"app","function_offset":16,"path":[16,20,24],"branches":2,"count":5}
`

func TestCompareContextsBranchesPaths(t *testing.T) {
	var r Reader
	truth := read(t, &r, truthRest)
	got := read(t, &r, `{"id":0,"parent":-1,"module":"/x/app","offset":16,"site_offset":0,"function":"main","calls":0}
{"id":9,"parent":0,"module":"/x/app","offset":32,"site_offset":2,"function":"f","calls":1}
{"id":7,"parent":9,"module":"/x/app","offset":48,"site_offset":7,"function":"g","calls":1}
{"module":"app","offset":5,"target_offset":9,"fallthrough_offset":7,"taken":1,"not_taken":1}
{"module":"app","function_offset":16,"path":[16,20,24],"branches":2,"count":1}
`)
	c, err := Compare(truth, got, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := metrics(c)
	near(t, "cct by site", m["cct_overlap"], 30+50)
	near(t, "cct by function", m["cct_function_overlap"], 40+50)
	near(t, "branch bias", m["branch_relative_overlap"], 75)
	near(t, "branch directions", m["branch_absolute_overlap"], 75)
	near(t, "paths", m["path_wall_matching"], 100)
}

func TestSelfComparisonIs100(t *testing.T) {
	var r Reader
	for _, text := range []string{truthDCG, truthRest, truthDCG + truthRest, callgrindOut} {
		p := read(t, &r, text)
		c, err := Compare(p, p, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range c.Metrics {
			near(t, m.Name, m.Value, 100)
		}
		if len(c.Costliest) != 0 {
			t.Errorf("self comparison has costly edges: %+v", c.Costliest)
		}
	}
}

// From a real run of callgrind 3.19, cut down.
const callgrindOut = `# callgrind format
version: 1
creator: callgrind-3.19.0
positions: instr line
events: Ir
summary: 1000

ob=(5) /tmp/t
fl=(146) /tmp/t.c
fn=(536) main
0x1060 6 1
+4 * 1
+4 * 1
cob=(3) /usr/lib/libc.so.6
cfi=(147) ./stdlib/atoi.c
cfn=(544) atoi@@GLIBC_2.2.5
calls=1 0x3d4a0 +20
* * 147
+5 * 1
jcnd=1/101 +36 *
* *
+2 * 100
cfn=(550) tail'2
calls=100 0x1200 -1
* * 2500

fn=(550)
0x1200 5 100
cfn=(552) mid
calls=100 +16 *
* * 2400
`

func TestCallgrind(t *testing.T) {
	r := Reader{FileOffset: func(file string, v uint64) (uint64, bool) {
		if file == "/tmp/t" {
			v -= 0x1000
		}
		return v, true
	}}
	p := read(t, &r, callgrindOut)
	want := Weights[Call]{
		{"t", 0x68, "libc.so.6", 0x3d4a0}: 1,
		{"t", 0x6f, "t", 0x200}:           100,
		{"t", 0x200, "t", 0x210}:          100,
	}
	if len(p.Calls) != len(want) {
		t.Errorf("calls = %v", p.Calls)
	}
	for k, v := range want {
		if p.Calls[k] != v {
			t.Errorf("calls of %+v = %v, want %v; all: %v", k, p.Calls[k], v, p.Calls)
		}
	}
	if caller, callee := p.Names(Call{"t", 0x6f, "t", 0x200}); caller != "main" || callee != "tail" {
		t.Errorf("names %q %q", caller, callee)
	}
	if b := p.Branches[BranchSite{"t", 0x6d}]; b != (Branch{1, 100}) {
		t.Errorf("branches = %v", p.Branches)
	}
}

func TestPprofCallGraph(t *testing.T) {
	m := &profile.Mapping{ID: 1, Start: 0x400000, Limit: 0x500000, Offset: 0x1000, File: "/usr/bin/app"}
	f := []*profile.Function{{ID: 1, Name: "main"}, {ID: 2, Name: "f"}}
	caller := &profile.Location{ID: 1, Mapping: m, Address: 0x400064, Line: []profile.Line{{Function: f[0]}}}
	callee := &profile.Location{ID: 2, Mapping: m, Address: 0x400200, Line: []profile.Line{{Function: f[1]}}}
	prof := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "calls", Unit: "count"}},
		Sample:     []*profile.Sample{{Location: []*profile.Location{callee, caller}, Value: []int64{3, 77}}},
		Mapping:    []*profile.Mapping{m}, Function: f, Location: []*profile.Location{caller, callee},
	}
	var b bytes.Buffer
	if err := prof.Write(&b); err != nil {
		t.Fatal(err)
	}
	p := read(t, &Reader{}, b.String())
	if got := p.Calls[Call{"app", 0x1064, "app", 0x1200}]; got != 77 || len(p.Calls) != 1 {
		t.Errorf("calls = %v", p.Calls)
	}
}

func TestBadInput(t *testing.T) {
	for _, text := range []string{
		"", "hello\n", "{\n", `{"calls":3}`, `{"id":1,"parent":0,"calls":1}`, "\x1f\x8bgarbage", "\x00\x01",
		"# callgrind format\npositions: line\n0 1\n", "# callgrind format\npositions: instr\ncalls=x\n",
	} {
		if p, err := (&Reader{}).Read(strings.NewReader(text), "bad"); err == nil {
			t.Errorf("%.20q was read as %+v", text, p)
		} else if !strings.HasPrefix(err.Error(), "bad") {
			t.Errorf("error without file name: %v", err)
		}
	}
}
