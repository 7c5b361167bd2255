package formats

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

func parsePprof(t *testing.T, graph string, p *Profile) (*profile.Profile, []byte) {
	t.Helper()
	w, err := Lookup(graph, "pprof")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := w(&b, p); err != nil {
		t.Fatal(err)
	}
	got, err := profile.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := got.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return got, b.Bytes()
}

func types(p *profile.Profile) string {
	var s []string
	for _, v := range p.SampleType {
		s = append(s, v.Type+"/"+v.Unit)
	}
	return strings.Join(s, " ")
}

// checkMappings holds the promise that an address tells the offset in its
// image, and that no two mappings share an address.
func checkMappings(t *testing.T, p *profile.Profile) {
	t.Helper()
	for i, a := range p.Mapping {
		if a.Start >= a.Limit {
			t.Errorf("mapping %s is empty: %x-%x", a.File, a.Start, a.Limit)
		}
		for _, b := range p.Mapping[:i] {
			if a.Start < b.Limit && b.Start < a.Limit {
				t.Errorf("mappings %s and %s overlap", a.File, b.File)
			}
		}
	}
	for _, l := range p.Location {
		if m := l.Mapping; m != nil && (l.Address < m.Start || l.Address >= m.Limit) {
			t.Errorf("location %x lies outside its mapping %x-%x", l.Address, m.Start, m.Limit)
		}
	}
}

func offset(l *profile.Location) uint64 { return l.Address - l.Mapping.Start + l.Mapping.Offset }

func TestStacksPprof(t *testing.T) {
	pr := newProgram(t)
	p := pr.profile()
	p.ThreadLabels = true
	kernel := pr.store.Image(image.Key{Kind: image.Kernel, Path: "[kernel.kallsyms]", BuildID: "abcd"})
	jit := func(pid int32) *image.Image {
		return pr.store.Image(image.Key{Kind: image.JIT, Path: "//anon", PID: pid})
	}
	lib := pr.store.Image(image.Key{Path: "/nonexistent/libgone.so.3", BuildID: "0123"})
	loc := func(im *image.Image, off uint64) image.Loc { return pr.store.Loc(image.Addr{Image: im, Offset: off}) }

	p.Stacks.Add(graph.Label{Comm: "one", PID: 3, TID: 4},
		[]image.Loc{pr.ip("leaf", 4), pr.ret("leaf_more", 20), pr.ret("main", 15)}, graph.Values{Samples: 3, Event: 2999999.6, Calls: 12.4})
	p.Stacks.Add(graph.Label{Comm: "two"}, []image.Loc{
		loc(kernel, 0xffffffff81000123), loc(jit(5), 0x7f0000001000), loc(jit(6), 0x7f0000001000),
		loc(lib, 0x1000), loc(pr.store.Image(image.Key{Kind: image.Unknown}), 0xdead),
	}, graph.Values{Samples: 1, Event: 1e6, Calls: 0.4})
	got, _ := parsePprof(t, "stacks", p)
	checkMappings(t, got)

	if s := types(got); s != "samples/count cpu/nanoseconds calls/count" || got.DefaultSampleType != "calls" {
		t.Errorf("sample types %s, default %s", s, got.DefaultSampleType)
	}
	if got.TimeNanos != p.Start || got.DurationNanos != p.Duration || got.Period != p.Period ||
		got.PeriodType.Type != "cpu" || got.PeriodType.Unit != "nanoseconds" || !reflect.DeepEqual(got.Comments, p.Comments) {
		t.Errorf("header: %d %d %d %v %v", got.TimeNanos, got.DurationNanos, got.Period, got.PeriodType, got.Comments)
	}
	one, two := got.Sample[0], got.Sample[1]
	if !reflect.DeepEqual(one.Value, []int64{3, 3000000, 12}) || !reflect.DeepEqual(two.Value, []int64{1, 1e6, 1}) { // 0.4+0.4 rounds up
		t.Errorf("values %v %v", one.Value, two.Value)
	}
	if !reflect.DeepEqual(one.Label, map[string][]string{"thread": {"one"}}) ||
		!reflect.DeepEqual(one.NumLabel, map[string][]int64{"pid": {3}, "tid": {4}}) || len(two.NumLabel) != 0 {
		t.Errorf("labels %v %v %v", one.Label, one.NumLabel, two.NumLabel)
	}
	for i, want := range []struct {
		fn  string
		off uint64
	}{{"leaf", pr.entry["leaf"] + 4}, {"leaf_more", pr.entry["leaf_more"] + 19}, {"main", pr.entry["main"] + 14}} {
		l := one.Location[i]
		if l.Line[0].Function.Name != want.fn || l.Line[0].Function.SystemName != want.fn || offset(l) != want.off {
			t.Errorf("frame %d: %s at offset %#x, want %s at %#x", i, l.Line[0].Function.Name, offset(l), want.fn, want.off)
		}
		if m := l.Mapping; m != got.Mapping[0] || m.File != pr.image.Path || !m.HasFunctions {
			t.Errorf("frame %d is in mapping %v, want the program, which is the main one", i, m)
		}
	}
	l := two.Location
	if l[0].Address != 0xffffffff81000123 || l[0].Mapping.BuildID != "abcd" || offset(l[0]) != l[0].Address {
		t.Errorf("kernel location %v", l[0])
	}
	if l[1].Address == l[2].Address || offset(l[1]) != 0x7f0000001000 || offset(l[2]) != 0x7f0000001000 ||
		l[1].Mapping.File != "/tmp/perf-5.map" {
		t.Errorf("JIT code of two processes: %v %v", l[1], l[2])
	}
	if l[3].Mapping.File != "/nonexistent/libgone.so.3" || l[3].Mapping.BuildID != "0123" || offset(l[3]) != 0x1000 || len(l[3].Line) != 0 {
		t.Errorf("library: %v", l[3])
	}
	if l[4].Mapping != nil || l[4].Address != 0xdead {
		t.Errorf("unmapped location %v", l[4])
	}

	p.Method, p.ThreadLabels = "none", false
	got, _ = parsePprof(t, "stacks", p)
	if got.DefaultSampleType != "cpu" || len(got.Sample[0].Label) != 0 {
		t.Errorf("method none: default %s, labels %v", got.DefaultSampleType, got.Sample[0].Label)
	}
}

// Function start lines and lines are what go build -pgo and inlining need.
func TestStacksPprofLines(t *testing.T) {
	pr := newProgram(t)
	p := pr.profile()
	p.Stacks.Add(graph.Label{}, []image.Loc{pr.ip("leaf_more", 0)}, graph.Values{Samples: 1})
	got, _ := parsePprof(t, "stacks", p)
	line := got.Sample[0].Location[0].Line[0]
	// Line 5 of the program.
	if f := line.Function; line.Line != 5 || f.StartLine != 5 || filepath.Base(f.Filename) != "prog.c" {
		t.Errorf("leaf_more: line %d, start line %d in %q, want 5, 5 in prog.c", line.Line, f.StartLine, f.Filename)
	}
	if m := got.Mapping[0]; !m.HasFilenames || !m.HasLineNumbers {
		t.Errorf("mapping %v does not say it has lines", m)
	}
}

func TestWildOffsetsDoNotOverflow(t *testing.T) {
	pr := newProgram(t)
	p := pr.profile()
	for pid := int32(1); pid < 40; pid++ {
		im := pr.store.Image(image.Key{Kind: image.JIT, PID: pid})
		for _, off := range []uint64{0, 1 << 47, math.MaxUint64} {
			p.Stacks.Add(graph.Label{}, []image.Loc{pr.store.Loc(image.Addr{Image: im, Offset: off, Return: true})}, graph.Values{Samples: 1})
		}
	}
	got, _ := parsePprof(t, "stacks", p)
	for _, l := range got.Location {
		if l.Address < l.Mapping.Start || l.Address > l.Mapping.Limit && l.Mapping.Limit != 0 {
			t.Errorf("location %x outside its mapping %x-%x", l.Address, l.Mapping.Start, l.Mapping.Limit)
		}
	}
}

func (p *program) dcg() *graph.DCG {
	at := func(name string, off uint64) image.Addr {
		return image.Addr{Image: p.image, Offset: p.entry[name] + off}
	}
	g := graph.NewDCG()
	g.Add(graph.Edge{Site: at("main", 14), Callee: at("leaf_more", 0)}, graph.EdgeValues{Samples: 2, Calls: 10.6, Stderr: 1.5})
	g.Add(graph.Edge{Site: at("leaf_more", 20), Callee: at("leaf", 0)}, graph.EdgeValues{Samples: 7, Calls: 1, Stderr: math.NaN()})
	return g
}

func TestDCGPprof(t *testing.T) {
	pr := newProgram(t)
	p := pr.profile()
	p.DCG = pr.dcg()
	got, _ := parsePprof(t, "dcg", p)
	checkMappings(t, got)
	if s := types(got); s != "samples/count calls/count" {
		t.Errorf("sample types %s", s)
	}
	type edge struct {
		callee, caller       string
		calleeOff, callerOff uint64
		samples, calls       int64
	}
	seen := map[edge]bool{}
	for _, s := range got.Sample {
		if len(s.Location) != 2 {
			t.Fatalf("%d locations", len(s.Location))
		}
		callee, caller := s.Location[0], s.Location[1]
		seen[edge{
			callee.Line[0].Function.Name, caller.Line[0].Function.Name, offset(callee), offset(caller), s.Value[0], s.Value[1],
		}] = true
	}
	want := map[edge]bool{
		{"leaf_more", "main", pr.entry["leaf_more"], pr.entry["main"] + 14, 2, 11}: true,
		{"leaf", "leaf_more", pr.entry["leaf"], pr.entry["leaf_more"] + 20, 7, 1}:  true,
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("edges %v, want %v", seen, want)
	}
}

func TestDCGJSONL(t *testing.T) {
	pr := newProgram(t)
	p := pr.profile()
	p.DCG = pr.dcg()
	var b bytes.Buffer
	if err := writeDCGJSONL(&b, p); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	want := map[string]map[string]any{
		"main": {
			"site_module": pr.image.Path, "site_offset": float64(pr.entry["main"] + 14), "callee_module": pr.image.Path,
			"callee_offset": float64(pr.entry["leaf_more"]), "caller": "main", "callee": "leaf_more",
			"samples": 2.0, "calls": 10.6, "stderr": 1.5,
		},
		"leaf_more": {
			"site_module": pr.image.Path, "site_offset": float64(pr.entry["leaf_more"] + 20), "callee_module": pr.image.Path,
			"callee_offset": float64(pr.entry["leaf"]), "caller": "leaf_more", "callee": "leaf",
			"samples": 7.0, "calls": 1.0, "stderr": nil,
		},
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d", len(lines), len(want))
	}
	for _, l := range lines {
		var got map[string]any
		if err := json.Unmarshal([]byte(l), &got); err != nil {
			t.Fatal(err)
		}
		if w := want[got["caller"].(string)]; !reflect.DeepEqual(got, w) {
			t.Errorf("got %v, want %v", got, w)
		}
	}
}

func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "PPROF_BINARY_PATH=/nonexistent", "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestGoToolPprofOpensThem(t *testing.T) {
	pr := newProgram(t)
	p := pr.profile()
	p.DCG = pr.dcg()
	p.Stacks.Add(graph.Label{}, []image.Loc{pr.ip("leaf", 4), pr.ret("leaf_more", 20), pr.ret("main", 15)}, graph.Values{Samples: 3, Event: 3e6, Calls: 42})
	dir := t.TempDir()
	for _, c := range []struct {
		graph string
		args  []string
		want  []string
	}{
		{"stacks", []string{"-top"}, []string{"Type: calls", "Time: 2023-11-14", "42   100%   100%         42   100%  leaf"}},
		{"stacks", []string{"-top", "-sample_index=cpu"}, []string{"3ms   100%   100%        3ms   100%  leaf"}},
		{"stacks", []string{"-peek", "leaf_more"}, []string{"42   100% |   main"}},
		{"dcg", []string{"-peek", "leaf_more"}, []string{"11 91.67% |   main", "1  8.33% |   leaf"}},
		{"stacks", []string{"-raw"}, []string{"[FN][FL][LN]", "samples/count cpu/nanoseconds calls/count[dflt]"}},
	} {
		_, b := parsePprof(t, c.graph, p)
		file := filepath.Join(dir, c.graph+".pb.gz")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		out := goTool(t, append(append([]string{"tool", "pprof"}, c.args...), file)...)
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("pprof %v of %s lacks %q:\n%s", c.args, c.graph, w, out)
			}
		}
	}
}

// preprofile is what go build -pgo reads a profile with
// (cmd/internal/pgo.FromPProf); it wants samples/count or cpu/nanoseconds and
// start lines, and writes the call edges by line offset.
func TestGoBuildPGOReadsThem(t *testing.T) {
	pr := newProgram(t)
	p := pr.profile()
	// 20 is behind the call in line 6, one below the start of leaf_more.
	p.Stacks.Add(graph.Label{}, []image.Loc{pr.ip("leaf", 4), pr.ret("leaf_more", 20), pr.ret("main", 20)}, graph.Values{Samples: 3, Event: 3e6, Calls: 42})
	_, b := parsePprof(t, "stacks", p)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "default.pgo"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, b, 0o600); err != nil {
		t.Fatal(err)
	}
	goTool(t, "tool", "preprofile", "-i", in, "-o", out)
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GO PREPROFILE V1", "leaf_more\nleaf\n1 3\n"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("preprofile lacks %q:\n%s", want, got)
		}
	}
}

func TestEventType(t *testing.T) {
	for _, c := range []struct {
		e          *perfdata.Event
		name, unit string
	}{
		{&perfdata.Event{Name: "cpu-clock:u", Attr: perfdata.Attr{Type: perfdata.TypeSoftware}}, "cpu", "nanoseconds"},
		{&perfdata.Event{Name: "task-clock", Attr: perfdata.Attr{Type: perfdata.TypeSoftware, Config: perfdata.SWTaskClock}}, "cpu", "nanoseconds"},
		{&perfdata.Event{Name: "cycles:ppp"}, "cycles", "count"},
		{&perfdata.Event{Name: "cpu_core/cycles/u"}, "cycles", "count"},
		{&perfdata.Event{Name: "cpu-cycles"}, "cycles", "count"},
		{&perfdata.Event{Name: "sched:sched_switch", Attr: perfdata.Attr{Type: perfdata.TypeTracepoint}}, "sched:sched_switch", "count"},
		{nil, "events", "count"},
	} {
		if name, unit := EventType(c.e); name != c.name || unit != c.unit {
			t.Errorf("%v: %s/%s, want %s/%s", c.e, name, unit, c.name, c.unit)
		}
	}
}
