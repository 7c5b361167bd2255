package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/correct"
	"github.com/perfcorrect/perfcorrect/formats"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// tally counts, sample by sample, what the session does not.
type tally struct {
	threads   map[*session.Thread]bool
	processes map[int32]bool
	events    map[*perfdata.Event]uint64

	frames   uint64
	branches uint64 // samples with branch records
	records  uint64 // of all branch stacks
	cycles   bool   // some record has a cycle count
	dumps    uint64 // samples with user registers and stack
	full     uint64 // of them, with a dump as long as there was room for
}

func newTally() *tally {
	return &tally{threads: map[*session.Thread]bool{}, processes: map[int32]bool{}, events: map[*perfdata.Event]uint64{}}
}

func (t *tally) add(s *session.Sample) {
	t.events[s.Event]++
	t.threads[s.Thread] = true
	t.processes[s.Thread.PID] = true
	t.frames += uint64(len(s.Stack))
	if n := len(s.Branches); n > 0 {
		t.branches++
		t.records += uint64(n)
		for _, b := range s.Branches {
			t.cycles = t.cycles || b.Flags.Cycles() > 0
		}
	}
	if n := len(s.Raw.StackUser); n > 0 {
		t.dumps++
		if uint64(n) >= s.Raw.StackUserMax {
			t.full++
		}
	}
}

// describe puts together what is known when a recording has been read.
func (i *info) describe(in *input, t *tally) *recordingInfo {
	meta, st := in.reader.Meta(), in.session.Stats()
	r := &recordingInfo{Recording: recordingPart{
		File: in.name, Host: meta.Hostname, OSRelease: meta.OSRelease, Arch: meta.Arch,
		CPU: meta.CPUDesc, CPUsOnline: meta.CPUsOnline, PerfVersion: meta.Version, Cmdline: meta.Cmdline,
		Mode: "file", Compressed: meta.Compressed != nil,
		Samples: st.Samples, Seconds: float64(st.Last-st.First) / 1e9,
		Processes: len(t.processes), Threads: len(t.threads),
	}}
	switch {
	case meta.Pipe:
		r.Recording.Mode = "pipe"
	case meta.DirFormat > 0:
		r.Recording.Mode = "directory"
	}
	for _, n := range in.reader.Stats().Records {
		r.Recording.Records += n
	}
	for _, e := range meta.Events {
		r.Events = append(r.Events, describeEvent(e, st))
	}
	opt := correct.Options{Meta: meta, CallEvent: i.callEvent, Store: i.store}
	g := &gatherer{recordingInfo: r, in: in, meta: meta, st: st, tally: t, store: i.store}
	g.stacks()
	g.branchStacks()
	g.userStacks()
	g.counters(opt)
	g.scheduling()
	g.clock()
	g.buildIDs()
	for _, m := range correct.Methods() {
		if m == "auto" {
			continue
		}
		how, err := supports(m, opt)
		part := methodPart{Name: m, Works: err == nil && st.Samples > 0, Detail: how}
		switch {
		case err != nil:
			part.Detail = err.Error()
		case st.Samples == 0:
			part.Detail = "no samples"
		}
		r.Methods = append(r.Methods, part)
	}
	r.Advice = append(in.notes(), r.Advice...)
	return r
}

func describeEvent(e *perfdata.Event, st *session.Stats) eventPart {
	p := eventPart{Name: e.Name}
	if e.Index < len(st.Events) {
		s := st.Events[e.Index]
		p.Samples = s.Samples
		if s.Samples > 0 {
			p.Period = float64(s.Period) / float64(s.Samples)
		}
	}
	switch {
	case e.SamplePeriod == 0:
	case e.Freq():
		p.Every = fmt.Sprintf("%d Hz", e.SamplePeriod)
	default:
		p.Every = strconv.FormatUint(e.SamplePeriod, 10)
		if _, unit := formats.EventType(e); unit == "nanoseconds" {
			p.Every += " ns"
		}
	}
	if e.Leader != nil && e.Leader != e {
		p.Leader = e.Leader.Name
	}
	return p
}

// gatherer adds to a recordingInfo one kind of evidence after the other, and
// advice where it is missing.
type gatherer struct {
	*recordingInfo
	in    *input
	meta  *perfdata.Meta
	st    *session.Stats
	tally *tally
	store *image.Store
}

func (g *gatherer) evidence(name string, there bool, format string, args ...any) {
	g.Evidence = append(g.Evidence, evidencePart{name, there, fmt.Sprintf(format, args...)})
}

func (g *gatherer) advise(what, hint string) {
	g.Advice = append(g.Advice, note{what, hint})
}

func (g *gatherer) stacks() {
	var n, cut uint64
	for _, e := range g.st.Events {
		n += e.Stacks
		cut += e.Cut
	}
	if n == 0 {
		g.evidence("callchains", false, "none: samples show the function that ran, not who called it")
		g.advise("no callchains", "perf record -g, with programs built with -fno-omit-frame-pointer")
		return
	}
	text := fmt.Sprintf("%s of %d samples, %.1f frames on average, %s lack outer frames",
		share(n, g.st.Samples), g.st.Samples, float64(g.tally.frames)/float64(g.st.Samples), share(cut, n))
	if r := g.st.Repaired; r > 0 {
		text += fmt.Sprintf("; in %s the caller of the leaf was put back", share(r, n))
		if g.st.Mended > 0 {
			text += ", as the code tells it"
		}
	}
	g.evidence("callchains", true, "%s", text)
}

func (g *gatherer) branchStacks() {
	if g.tally.branches == 0 {
		g.evidence("branch stacks", false, "none")
		return
	}
	var kinds perfdata.BranchSample
	for _, e := range g.meta.Events {
		kinds |= e.BranchSampleType
	}
	kind := "branches"
	switch {
	case kinds&perfdata.BranchCallStack != 0:
		kind = "call stacks of the hardware, no sample of calls"
	case kinds&perfdata.BranchAny != 0:
		kind = "all taken branches"
	case kinds&perfdata.BranchAnyCall != 0:
		kind = "calls"
	}
	cycles := "without cycle counts"
	if g.tally.cycles {
		cycles = "with cycle counts"
	}
	g.evidence("branch stacks", true, "%s of %d samples, %.1f records on average: %s, %s",
		share(g.tally.branches, g.st.Samples), g.st.Samples, float64(g.tally.records)/float64(g.tally.branches), kind, cycles)
}

func (g *gatherer) userStacks() {
	t := g.tally
	if t.dumps == 0 {
		g.evidence("stack dumps", false, "none")
		return
	}
	g.evidence("stack dumps", true, "%s of %d samples, %s as long as there was room for", share(t.dumps, g.st.Samples), g.st.Samples, share(t.full, t.dumps))
}

func (g *gatherer) counters(opt correct.Options) {
	var reads uint64
	for _, e := range g.st.Events {
		reads += e.Reads
	}
	if reads == 0 {
		g.evidence("counters", false, "none read with the samples")
	} else {
		var names []string
		for _, e := range g.meta.Events {
			if len(e.Group) > 1 || e.Leader != nil && e.Leader != e {
				names = append(names, e.Name)
			}
		}
		g.evidence("counters", true, "read with %s of %d samples: %s", share(reads, g.st.Samples), g.st.Samples, strings.Join(names, ", "))
	}
	how, err := supports("density", opt)
	if err != nil {
		g.evidence("call counter", false, "%v", err)
		g.advise(err.Error(), counterHint)
		return
	}
	g.evidence("call counter", true, "%s", how)
}

func (g *gatherer) scheduling() {
	if !g.st.HasSwitches() {
		g.evidence("context switches", false, "none")
		return
	}
	g.evidence("context switches", true, "%s, %s of them preempted, %s",
		count(g.st.SwitchesOut, "switch"), share(g.st.Preempted, g.st.SwitchesOut), count(g.st.Wakeups, "wakeup"))
}

// clock tells whether ticks of the first event with samples can have waited.
func (g *gatherer) clock() {
	for _, e := range g.meta.Events {
		if g.tally.events[e] == 0 {
			continue
		}
		says := map[session.ClockKind]string{
			session.ThreadClock: "%s ticks with the thread: ticks never wait, time off the CPU is no latency",
			session.CPUClock:    "%s ticks with the CPU: a tick samples the thread that runs",
			session.WallClock:   "%s ticks by itself: a tick waits until the thread runs, which is latency",
		}
		g.evidence("clock", true, says[session.ClockOf(e, g.in.session.PerCPU(e))], e.Name)
		return
	}
}

// buildIDs counts the program files that samples are in by whether they can
// be told from later builds.
func (g *gatherer) buildIDs() {
	seen := map[*image.Image]bool{}
	for l := range g.store.NumLocs() {
		seen[g.store.Addr(image.Loc(l)).Image] = true
	}
	var with, without int
	for im := range seen {
		switch {
		case im.Kind != image.File && im.Kind != image.Module && im.Kind != image.Kernel:
		case im.BuildID != "":
			with++
		default:
			without++
		}
	}
	g.evidence("build IDs", with > 0, "%d of %s", with, count(with+without, "program file"))
	if without > 0 {
		g.advise(fmt.Sprintf("no build ID of %s: another build would go unnoticed", count(without, "program file")), "perf record --buildid-all")
	}
}
