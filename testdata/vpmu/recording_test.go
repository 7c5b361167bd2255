package vpmu

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// recorded runs bc once with every kind of recording the tests look at.
func recorded(t *testing.T) (dir string, res *Result) {
	t.Helper()
	dir = t.TempDir()
	var recs []Recording
	add := func(name string, change func(*Recording)) {
		r := DefaultRecording()
		r.Output = filepath.Join(dir, name)
		change(&r)
		recs = append(recs, r)
	}
	add("any", func(r *Recording) { r.Branch = "any" })
	add("any_call", func(r *Recording) { r.Branch, r.Skid, r.Seed = "any_call", 3, 2 })
	add("call_stack", func(r *Recording) { r.Branch, r.Samples = "call_stack", 500 })
	add("even", func(r *Recording) { r.Samples, r.Jitter, r.Callchain = 20000, 2, "none" })
	add("harsh", func(r *Recording) { r.Samples, r.Jitter, r.Callchain, r.Sigma, r.CostSeed = 20000, 2, "none", 0.7, 5 })
	add("calls", func(r *Recording) { r.Event = "near_call" })
	add("instructions", func(r *Recording) { r.Event, r.Sigma = "instructions", 0.7 })
	add("lost", func(r *Recording) { r.Lost, r.LostRun = 0.01, 20 })
	add("throttled", func(r *Recording) { r.Throttle, r.ThrottleRun = 0.01, 20 })
	add("multiplexed", func(r *Recording) { r.MuxOn, r.MuxOff = 300_000, 100_000 })
	add("fixed", func(r *Recording) { r.Jitter, r.Skid = 0, 3 })
	add("deferred", func(r *Recording) { r.Defer = true })
	res = run(t, Config{
		Program: []string{"bc", "-lq", file(t, dir, "pi.bc", "scale=150; a(1)*4; e(2)\nhalt\n")}, Recordings: recs, TruthDir: filepath.Join(dir, "truth"),
	})
	return dir, res
}

// samples reads a recording; the samples are copies.
func samples(t *testing.T, path string) (all []*perfdata.Sample, others map[perfdata.RecordType]int, meta *perfdata.Meta) {
	t.Helper()
	r, err := perfdata.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	others = map[perfdata.RecordType]int{}
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := rec.(*perfdata.Sample); ok {
			all = append(all, s.Clone())
		} else {
			others[rec.Header().Type]++
		}
	}
	if d := r.Stats().Damage; d != nil {
		t.Fatalf("%s: %v", path, d)
	}
	return all, others, r.Meta()
}

func TestRecordings(t *testing.T) {
	dir, res := recorded(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	t.Run("perf script", func(t *testing.T) {
		for i, n := range []string{"any", "any_call", "call_stack", "even", "harsh", "calls", "instructions", "lost", "throttled", "multiplexed", "fixed", "deferred"} {
			cmd := exec.Command("perf", "script", "-i", at(n), "-F", "event,ip,sym")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil || strings.Contains(errs.String(), "incompatible") {
				t.Errorf("%s: perf script: %v\n%s", n, err, errs.String())
			}
			leader := map[string]string{"calls": "br_inst_retired.near_call:u:", "instructions": "instructions:u:"}[n]
			if leader == "" {
				leader = "cycles:u:"
			}
			if got := bytes.Count(out, []byte(leader)); got != res.Samples[i] {
				t.Errorf("%s: perf script prints %d samples, %d were written", n, got, res.Samples[i])
			}
		}
	})
	t.Run("counters", func(t *testing.T) { checkCounters(t, at, res) })
	t.Run("branches", func(t *testing.T) { checkBranches(t, at("any"), at("any_call")) })
	t.Run("cost", func(t *testing.T) {
		checkCost(t, at("even"), at("truth"), 0, 0, res.Cycles[3])
		checkCost(t, at("harsh"), at("truth"), 0.7, 5, res.Cycles[4])
	})
	t.Run("losses", func(t *testing.T) { checkLosses(t, at, res) })
	t.Run("deferred", func(t *testing.T) { checkDeferred(t, at("deferred"), at("truth")) })
}

func checkCounters(t *testing.T, at func(string) string, res *Result) {
	all, others, meta := samples(t, at("any"))
	if len(meta.Events) != 4 || meta.Events[1].Type != perfdata.TypeRaw || meta.Events[1].Config != nearCall {
		t.Fatalf("events: %+v", meta.Events)
	}
	if others[perfdata.TypeMmap2] < 3 || others[perfdata.TypeComm] != 1 {
		t.Errorf("records beside samples: %v", others)
	}
	var last *perfdata.Sample
	periods := 0.0
	for i, s := range all {
		v := s.Counters
		if s.Time-timeBase != v[0].Value || s.TimeRunning != v[0].Value || s.TimeEnabled != s.TimeRunning {
			t.Fatalf("sample %d of the only thread: time %d, cycles %d, enabled %d, running %d", i, s.Time-timeBase, v[0].Value, s.TimeEnabled, s.TimeRunning)
		}
		if d := int64(v[0].Value - v[2].Value); d < 0 || d > 1000 { // rounds of repeated string instructions
			t.Fatalf("sample %d: sigma 0, but %d cycles and %d instructions", i, v[0].Value, v[2].Value)
		}
		if last != nil {
			for k := range v {
				if v[k].Value < last.Counters[k].Value {
					t.Fatalf("sample %d: counter %d runs backwards", i, k)
				}
			}
			if d := float64(v[0].Value - last.Counters[0].Value); math.Abs(d-float64(s.Period)) > 600 {
				t.Errorf("sample %d: %.0f cycles after the last, period %d", i, d, s.Period)
			}
		}
		periods += float64(s.Period)
		last = s
	}
	if math.Abs(periods-res.Cycles[0]) > 0.01*res.Cycles[0] {
		t.Errorf("periods add up to %.0f of %.0f cycles", periods, res.Cycles[0])
	}
	fixed, _, meta := samples(t, at("fixed"))
	for i, s := range fixed { // a real counter overflows at multiples of its period; what is beyond is skid
		if over := s.Counters[0].Value % meta.Events[0].SamplePeriod; over > 600 || s.Counters[0].Value < uint64(i+1)*meta.Events[0].SamplePeriod {
			t.Fatalf("sample %d: counter %d, %d beyond a multiple of the period", i, s.Counters[0].Value, over)
		}
	}
	calls, _, _ := samples(t, at("calls"))
	if len(calls) < 1900 || len(calls) > 2100 {
		t.Errorf("%d call samples, 2000 wanted", len(calls))
	}
}

// checkBranches: what an LBR shows must be a way through the program.
func checkBranches(t *testing.T, any, anyCall string) {
	for _, path := range []string{any, anyCall} {
		all, _, _ := samples(t, path)
		text := newText(t, path)
		records, gaps := 0, 0
		for _, s := range all[1:] {
			if len(s.Branches) != 32 {
				t.Fatalf("%s: %d records", path, len(s.Branches))
			}
			var cycles uint64
			for i, b := range s.Branches {
				records++
				if err := text.goes(b, path == anyCall); err != nil {
					t.Fatalf("%s: record %d: %v", path, i, err)
				}
				if path == any && i+1 < len(s.Branches) {
					if older := s.Branches[i+1].To; older > b.From || b.From-older > 1<<14 {
						gaps++
					}
				}
				cycles += uint64(b.Flags.Cycles())
			}
			if path == any && (s.Branches[0].To > s.IP || s.IP-s.Branches[0].To > 1<<14) {
				gaps++
			}
			if cycles == 0 || cycles > s.Time-timeBase {
				t.Fatalf("%s: records span %d cycles at %d", path, cycles, s.Time-timeBase)
			}
		}
		if gaps > 0 {
			t.Errorf("%s: %d of %d records do not lead to the next", path, gaps, records)
		}
	}
}

// text is the code of a recorded program, by recorded address.
type text struct {
	maps []*perfdata.Mmap
	code map[string]*elfCode
}

func newText(t *testing.T, path string) *text {
	t.Helper()
	x := &text{code: map[string]*elfCode{}}
	r, err := perfdata.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := rec.(*perfdata.Mmap); ok {
			x.maps = append(x.maps, m)
			if x.code[m.Filename], err = openCode(m.Filename); err != nil {
				t.Fatal(err)
			}
		}
	}
	return x
}

func (x *text) find(addr uint64) (file string, off uint64) {
	for _, m := range x.maps {
		if addr >= m.Addr && addr-m.Addr < m.Len {
			return m.Filename, addr - m.Addr + m.Pgoff
		}
	}
	return "", 0
}

// goes checks one record against the instruction at its source.
func (x *text) goes(b perfdata.Branch, call bool) error {
	file, off := x.find(b.From)
	if to, _ := x.find(b.To); file == "" || to == "" {
		return fmt.Errorf("%#x to %#x: not in a mapping", b.From, b.To)
	}
	code := x.code[file].bytes(x.code[file].vaddr(off), 16)
	n := 0
	for code[n] == 0xf2 || code[n] == 0xf3 || code[n] == 0x3e || code[n] == 0x2e || code[n]&0xf0 == 0x40 {
		n++
	}
	rel := func(at, size int) bool {
		d := int64(int8(code[at]))
		if size == 4 {
			d = int64(int32(uint32(code[at]) | uint32(code[at+1])<<8 | uint32(code[at+2])<<16 | uint32(code[at+3])<<24))
		}
		return b.From+uint64(at+size)+uint64(d) == b.To
	}
	k, op := b.Flags.Kind(), code[n]
	ok := false
	switch {
	case op == 0xe8:
		ok = k == perfdata.KindCall && rel(n+1, 4)
	case op == 0xff && code[n+1]>>3&7 == 2:
		ok = k == perfdata.KindIndirectCall
	case call:
	case op == 0xe9:
		ok = k == perfdata.KindJump && rel(n+1, 4)
	case op == 0xeb:
		ok = k == perfdata.KindJump && rel(n+1, 1)
	case op&0xf0 == 0x70:
		ok = k == perfdata.KindCond && rel(n+1, 1)
	case op == 0x0f && code[n+1]&0xf0 == 0x80:
		ok = k == perfdata.KindCond && rel(n+2, 4)
	case op == 0xff && code[n+1]>>3&7 == 4:
		ok = k == perfdata.KindIndirectJump
	case op == 0xc3 || op == 0xc2:
		ok = k == perfdata.KindReturn
	}
	if !ok {
		return fmt.Errorf("%#x to %#x, kind %d: the instruction % x does not do that", b.From, b.To, k, code[:8])
	}
	return nil
}

// checkCost: samples fall on instructions in proportion to what they cost.
// Conditional branches are the instructions whose number of executions the
// truth knows, and each carries the cost factor of its own block.
func checkCost(t *testing.T, path, truth string, sigma float64, seed uint64, cycles float64) {
	all, _, _ := samples(t, path)
	x := newText(t, path)
	type where struct {
		file string
		off  uint64
	}
	seen := map[where]float64{}
	for _, s := range all {
		f, off := x.find(s.IP)
		seen[where{f, off}]++
	}
	n := float64(len(all))
	chi2, df, restSeen, restWant := 0.0, 0, n, n
	for _, l := range readLines[BranchLine](t, filepath.Join(truth, "edges.jsonl")) {
		want := n * float64(l.Taken+l.NotTaken) * factor(sigma, seed, l.Module, l.Offset) / cycles
		if want < 8 {
			continue
		}
		got := seen[where{l.Module, l.Offset}]
		chi2 += (got - want) * (got - want) / want
		df++
		restSeen -= got
		restWant -= want
	}
	chi2 += (restSeen - restWant) * (restSeen - restWant) / restWant
	limit := float64(df) + 5*math.Sqrt(2*float64(df)) // about five standard deviations
	t.Logf("sigma %g: %d samples on %d branches: chi-square %.1f, limit %.1f", sigma, len(all), df, chi2, limit)
	if df < 30 || chi2 > limit {
		t.Errorf("sigma %g: chi-square %.1f with %d degrees of freedom", sigma, chi2, df)
	}
}

// factor is what plugin/block.c computes.
func factor(sigma float64, seed uint64, path string, off uint64) float64 {
	mix := func(x uint64) uint64 {
		x += 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	unit := func(x uint64) float64 { return (float64(x>>11) + 0.5) / (1 << 53) }
	var image uint64
	for _, c := range []byte(path) {
		image = mix(image ^ uint64(c))
	}
	h := mix(mix(seed) ^ image ^ mix(off))
	z := math.Sqrt(-2*math.Log(unit(h))) * math.Cos(2*math.Pi*unit(mix(h)))
	return math.Exp(sigma*z - sigma*sigma/2)
}

func checkLosses(t *testing.T, at func(string) string, res *Result) {
	all, others, _ := samples(t, at("lost"))
	if lost := all[len(all)-1].Counters[0].Lost; lost == 0 || int(lost) > res.Lost[7] || others[perfdata.TypeLost] == 0 {
		t.Errorf("lost: %d counted, %d dropped, %d records", lost, res.Lost[7], others[perfdata.TypeLost])
	}
	all, others, _ = samples(t, at("throttled"))
	if d := others[perfdata.TypeThrottle] - others[perfdata.TypeUnthrottle]; others[perfdata.TypeThrottle] == 0 || d < 0 || d > 1 {
		t.Errorf("throttled: %v", others)
	}
	last := all[len(all)-1]
	if want := 1 - float64(res.Lost[8])/float64(res.Lost[8]+len(all)); math.Abs(float64(last.Counters[0].Value)/res.Cycles[8]-want) > 0.05 {
		t.Errorf("throttled: leader counted %d of %.0f cycles, %.3f wanted", last.Counters[0].Value, res.Cycles[8], want)
	}
	all, _, _ = samples(t, at("multiplexed"))
	last = all[len(all)-1]
	share := float64(last.TimeRunning) / float64(last.TimeEnabled)
	counted := float64(last.Counters[0].Value) / float64(last.TimeEnabled)
	if math.Abs(share-0.75) > 0.02 || math.Abs(counted-share) > 0.01 || math.Abs(float64(len(all))-1500) > 60 {
		t.Errorf("multiplexed: running %.3f of the time, counted %.3f, %d samples; 0.75 and 1500 wanted", share, counted, len(all))
	}
}

// checkDeferred: a yield-point sampler takes samples at entries of functions.
func checkDeferred(t *testing.T, path, truth string) {
	entries := map[string]map[uint64]bool{}
	for _, l := range readLines[EdgeLine](t, filepath.Join(truth, "dcg.jsonl")) {
		if entries[l.CalleeModule] == nil {
			entries[l.CalleeModule] = map[uint64]bool{}
		}
		entries[l.CalleeModule][l.CalleeOffset] = true
	}
	all, _, _ := samples(t, path)
	x := newText(t, path)
	for i, s := range all {
		if f, off := x.find(s.IP); !entries[f][off] {
			t.Fatalf("sample %d at %s+%#x, which no call enters", i, f, off)
		}
	}
}

// TestCallchains: an exact callchain is the calling context the truth counts.
func TestCallchains(t *testing.T) {
	dir := t.TempDir()
	r := DefaultRecording()
	r.Output, r.MaxStack = filepath.Join(dir, "perf.data"), 1000
	c := Config{
		Program: []string{"bc", "-lq", file(t, dir, "pi.bc", "scale=60; a(1)*4\nhalt\n")}, Recordings: []Recording{r},
		TruthDir: filepath.Join(dir, "truth"), KeepLog: true, WorkDir: workDir(t),
	}
	log := run(t, c).Log
	truth := new(truthData)
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []*sampleEvent
	var maps []mapEvent
	err = newDecoder(f, 4).run(sink{truth: truth, event: func(e any) error {
		if m, ok := e.(mapEvent); ok {
			maps = append(maps, m)
		}
		return nil
	}, sample: func(s *sampleEvent) error {
		k := *s
		k.chain = append([]uint64(nil), s.chain...)
		all = append(all, &k)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	offset := func(addr uint64) uint64 {
		for _, m := range maps {
			if addr >= m.addr && addr < m.addr+m.len {
				return addr - m.addr + m.pgoff
			}
		}
		return 0
	}
	frames, stubs := 0, 0
	for i, s := range all {
		var sites []uint64
		for n := s.context; n != 0; n = truth.cct[n].parent {
			if site := truth.cct[n].site; site != 0 {
				sites = append(sites, truth.places[site].offset)
			}
		}
		chain := s.chain
		if len(chain) == len(sites)+1 { // inside a PLT stub: called, not yet arrived
			chain = chain[1:]
			stubs++
		}
		if len(chain) != len(sites) {
			t.Fatalf("sample %d: %d frames, context of depth %d", i, len(chain), len(sites))
		}
		for k := range chain {
			if d := offset(chain[k]) - sites[k]; d < 2 || d > 8 {
				t.Fatalf("sample %d, frame %d: returns to %#x, called at %#x", i, k, offset(chain[k]), sites[k])
			}
			frames++
		}
	}
	if len(all) < 1900 || frames < len(all) || stubs > len(all)/4 {
		t.Errorf("%d samples, %d frames, %d in stubs", len(all), frames, stubs)
	}
}

// TestRepeats: the same seed gives the same bytes.
func TestRepeats(t *testing.T) {
	dir := t.TempDir()
	var got [2][]byte
	for i := range got {
		r := DefaultRecording()
		r.Output, r.Branch, r.Sigma, r.Skid = filepath.Join(dir, "perf.data"), "any", 0.7, 3
		run(t, Config{
			Program: []string{"gzip", "-c"}, Stdin: input(t, dir, 5000), Recordings: []Recording{r}, TruthDir: filepath.Join(dir, "truth"), Paths: true,
		})
		for _, f := range []string{"perf.data", "truth/dcg.jsonl", "truth/cct.jsonl", "truth/edges.jsonl", "truth/paths.jsonl"} {
			b, err := os.ReadFile(filepath.Join(dir, f))
			if err != nil {
				t.Fatal(err)
			}
			got[i] = append(got[i], b...)
		}
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Error("two runs with one seed differ")
	}
}
