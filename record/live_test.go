package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

var programs sync.Map // compiled, by name

// program compiles one of testdata/programs.
func program(t *testing.T, name string) string {
	t.Helper()
	if p, ok := programs.Load(name); ok {
		return p.(string)
	}
	dir, err := os.MkdirTemp("", "perfcorrect-record")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, name)
	b, err := exec.Command("gcc", "-O0", "-g", "-pthread", "-o", out, "testdata/programs/"+name+".c").CombinedOutput()
	if err != nil {
		t.Fatalf("gcc: %v\n%s", err, b)
	}
	os.Chmod(dir, 0o755)
	programs.Store(name, out)
	return out
}

// mayRecord skips a test where a user could not record either.
func mayRecord(t *testing.T) {
	t.Helper()
	m, err := ReadMachine(os.DirFS("/"))
	if err != nil {
		t.Skip("no sysfs: ", err)
	}
	if _, err := Probe(m, false); err != nil {
		t.Skip("the kernel does not let this user record: ", err)
	}
}

// needRoot skips tests of what only root may do.
func needRoot(t *testing.T) {
	t.Helper()
	mayRecord(t)
	if os.Geteuid() != 0 {
		t.Skip("only root may record this")
	}
}

// run is a recorder process.
type run struct {
	cmd    *exec.Cmd
	order  order
	stderr bytes.Buffer
}

func startRecorder(t *testing.T, o order, wrap ...string) *run {
	t.Helper()
	mayRecord(t)
	dir := t.TempDir()
	os.Chmod(dir, 0o777) // for tests as another user
	if o.Output == "" {
		o.Output = filepath.Join(dir, "perf.data")
	}
	o.Outcome = filepath.Join(dir, "outcome")
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{order: o}
	args := append(append([]string(nil), wrap...), self)
	r.cmd = exec.Command(args[0], args[1:]...)
	r.cmd.Env = append(os.Environ(), recorderEnv+"="+string(text))
	r.cmd.Stderr = &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cmd.Process.Kill() })
	return r
}

// wait returns what became of it; it must not take longer than a minute.
func (r *run) wait(t *testing.T) *outcome {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { r.cmd.Process.Signal(syscall.SIGQUIT) })
	err := r.cmd.Wait()
	if !timer.Stop() {
		t.Fatalf("the recorder hangs:\n%s", r.stderr.String())
	}
	b, readErr := os.ReadFile(r.order.Outcome)
	if readErr != nil {
		t.Fatalf("no outcome: %v, %v\n%s", err, readErr, r.stderr.String())
	}
	var o outcome
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

// record makes a recording that has to succeed.
func record(t *testing.T, o Options) (*outcome, *recording) {
	t.Helper()
	r := startRecorder(t, order{Options: o})
	out := r.wait(t)
	if out.Err != "" {
		t.Fatalf("recording: %s (%s)\n%s", out.Err, out.Hint, r.stderr.String())
	}
	rec := readRecording(t, r.order.Output)
	if rec.damage != "" {
		t.Errorf("the recording is damaged: %s", rec.damage)
	}
	if rec.unknown > 0 || rec.malformed > 0 {
		t.Errorf("%d records of unknown events, %d malformed", rec.unknown, rec.malformed)
	}
	if out.Counts.Lost == 0 && uint64(len(rec.samples)) != out.Counts.Samples {
		t.Errorf("%d samples counted, %d in the file", out.Counts.Samples, len(rec.samples))
	}
	if out.Counts.BadRecords != 0 {
		t.Errorf("%d bad records", out.Counts.BadRecords)
	}
	return out, rec
}

func command(args ...string) Options { return Options{Target: Target{Command: args}} }

// recording is what a file holds.
type recording struct {
	path      string
	meta      *perfdata.Meta
	samples   []*perfdata.Sample
	forks     []*perfdata.Task
	exits     []*perfdata.Task
	comms     []*perfdata.Comm
	mmaps     []*perfdata.Mmap
	switches  int
	lost      uint64
	damage    string
	unknown   uint64
	malformed uint64
}

func readRecording(t *testing.T, path string) *recording {
	t.Helper()
	r, err := perfdata.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rec := &recording{path: path, meta: r.Meta()}
	for x, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		switch x := x.(type) {
		case *perfdata.Sample:
			rec.samples = append(rec.samples, x.Clone())
		case *perfdata.Task:
			if x.Type == perfdata.TypeFork {
				rec.forks = append(rec.forks, x)
			} else {
				rec.exits = append(rec.exits, x)
			}
		case *perfdata.Comm:
			rec.comms = append(rec.comms, x)
		case *perfdata.Mmap:
			rec.mmaps = append(rec.mmaps, x)
		case *perfdata.Switch:
			rec.switches++
		case *perfdata.Lost:
			rec.lost += x.Count
		}
	}
	st := r.Stats()
	if st.Damage != nil {
		rec.damage = fmt.Sprint(st.Damage)
	}
	rec.unknown, rec.malformed = uint64(st.UnknownID), uint64(st.Malformed)
	return rec
}

// perSample counts samples by what f makes of them.
func perSample[K comparable](rec *recording, f func(*perfdata.Sample) K) map[K]int {
	n := map[K]int{}
	for _, s := range rec.samples {
		n[f(s)]++
	}
	return n
}

// script asks perf for the samples' symbols: a line of leaf;caller;... each.
func script(t *testing.T, path string, args ...string) []string {
	t.Helper()
	cmd := exec.Command("perf", append([]string{"script", "-f", "--no-inline", "-i", path, "-F", "ip,sym"}, args...)...)
	cmd.Env = append(os.Environ(), "PERF_CONFIG=/dev/null", "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("perf script: %v (needs the Debian package linux-perf)", err)
	}
	var stacks []string
	for block := range strings.SplitSeq(string(out), "\n\n") {
		var frames []string
		for line := range strings.Lines(block) {
			if f := strings.Fields(line); len(f) > 1 {
				frames = append(frames, f[1])
			}
		}
		if len(frames) > 0 {
			stacks = append(stacks, strings.Join(frames, ";"))
		}
	}
	return stacks
}

func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if got < want*(1-share) || got > want*(1+share) {
		t.Errorf("%s: %.4g, want %.4g within %.0f %%", what, got, want, 100*share)
	}
}

func TestRecordCommand(t *testing.T) {
	path := program(t, "calls")
	o := command(path, "100000", "7")
	o.NoDump = true // perf script would unwind it
	out, rec := record(t, o)
	if out.Status != 7 {
		t.Errorf("exit status %d, want 7", out.Status)
	}
	comms := perSample(rec, func(s *perfdata.Sample) int32 { return s.PID })
	if len(comms) != 1 {
		t.Errorf("samples of processes %v, want one", comms)
	}
	n := map[string]int{}
	for _, s := range script(t, rec.path) {
		for _, f := range []string{"often", "seldom"} {
			if strings.Contains(s, ";"+f+";main") || strings.HasPrefix(s, f+";main") {
				n[f]++
			}
		}
	}
	// Two calls of spin(300) by often, or one beside spin(3000) by seldom.
	if n["seldom"] < 100 {
		t.Fatalf("too few samples: %v", n)
	}
	within(t, "time in seldom over time in often", float64(n["seldom"])/float64(n["often"]), 11, 0.3)
	if m := rec.meta; m.Hostname == "" || m.OSRelease == "" || m.Arch == "" || m.CPUsOnline == 0 || len(m.Cmdline) == 0 || m.TotalMemKiB == 0 || m.SampleTime.Last <= m.SampleTime.First {
		t.Errorf("features are missing: %+v", m)
	}
	if info, _ := os.Stat(rec.path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
	ids := map[string]bool{}
	for _, b := range rec.meta.BuildIDs {
		ids[b.Filename] = len(b.ID) > 0
	}
	for _, m := range rec.mmaps {
		if strings.HasPrefix(m.Filename, "/") && !ids[m.Filename] {
			t.Errorf("no build ID of %s", m.Filename)
		}
	}
	if !ids[path] || !ids[kernelName] {
		t.Errorf("build IDs %v lack the program or the kernel", ids)
	}
	if rec.switches == 0 {
		t.Error("no context switches")
	}
}

func TestRecordThreads(t *testing.T) {
	out, rec := record(t, command(program(t, "many"), "100", "0", "60"))
	threads := perSample(rec, func(s *perfdata.Sample) int32 { return s.TID })
	if len(threads) < 100 {
		t.Errorf("samples of %d threads, want 100 and more", len(threads))
	}
	born := 0
	for _, f := range rec.forks {
		if f.TaskPID == f.TaskPPID && f.Time > 0 {
			born++
		}
	}
	if born != 100 {
		t.Errorf("%d threads were born, want 100", born)
	}
	if len(rec.exits) != 101 {
		t.Errorf("%d threads ended, want 101", len(rec.exits))
	}
	if out.Counts.Lost > 0 {
		t.Errorf("%d records lost", out.Counts.Lost)
	}
}

func TestRecordForkStorm(t *testing.T) {
	out, rec := record(t, command(program(t, "many"), "0", "1000", "1"))
	if out.Status != 0 {
		t.Errorf("status %d", out.Status)
	}
	children := 0
	for _, f := range rec.forks {
		if f.Time > 0 && f.TaskPID != f.TaskPPID {
			children++
		}
	}
	if children != 1000 || len(rec.exits) != 1001 || out.Counts.Lost > 0 {
		t.Errorf("%d children born, %d processes ended, %d records lost; want 1000, 1001, 0", children, len(rec.exits), out.Counts.Lost)
	}
}

func TestRecordExecChain(t *testing.T) {
	_, rec := record(t, command("sh", "-c", "exec env -- nice -n 0 "+program(t, "calls")+" 10000"))
	var names []string
	for _, c := range rec.comms {
		if c.Misc&perfdata.MiscCommExec != 0 {
			names = append(names, c.Comm)
		}
	}
	if got, want := strings.Join(names, " "), "sh env nice calls"; got != want {
		t.Errorf("programs %q, want %q", got, want)
	}
	if pids := perSample(rec, func(s *perfdata.Sample) int32 { return s.PID }); len(pids) != 1 {
		t.Errorf("processes %v, want one", pids)
	}
}

func TestRecordGo(t *testing.T) {
	dir := t.TempDir()
	src := `package main
import "sync"
var sink int
//go:noinline
func work(n int) { for i := range n { sink += i } }
func main() {
	var wg sync.WaitGroup
	for range 8 { wg.Go(func() { for range 200 { work(100000) } }) }
	wg.Wait()
}`
	os.WriteFile(dir+"/main.go", []byte(src), 0o644)
	build := exec.Command("go", "build", "-o", dir+"/prog", dir+"/main.go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, b)
	}
	o := command(dir + "/prog")
	o.NoDump = true
	_, rec := record(t, o)
	n := 0
	stacks := script(t, rec.path)
	for _, s := range stacks {
		if strings.Contains(s, "main.work;main.main.func1") || strings.Contains(s, "main.work;main.main.gowrap") || strings.Contains(s, "main.work;") {
			n++
		}
	}
	if n*10 < len(stacks)*7 || n < 50 {
		t.Errorf("%d of %d stacks are in main.work", n, len(stacks))
	}
}

// start runs a program beside the test.
func start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func TestRecordAttached(t *testing.T) {
	target := start(t, program(t, "many"), "3", "0", "100000")
	time.Sleep(100 * time.Millisecond)
	r := startRecorder(t, order{Options: Options{Target: Target{PIDs: []int{target.Process.Pid}}}})
	time.Sleep(time.Second)
	target.Process.Kill() // the recording ends with what it is of
	target.Wait()
	out := r.wait(t)
	if out.Err != "" {
		t.Fatal(out.Err)
	}
	rec := readRecording(t, r.order.Output)
	threads := perSample(rec, func(s *perfdata.Sample) int32 { return s.TID })
	if len(threads) != 3 || len(rec.samples) < 100 {
		t.Errorf("%d samples of threads %v, want three", len(rec.samples), threads)
	}
	mapped, names := false, 0
	for _, m := range rec.mmaps {
		mapped = mapped || m.Filename == program(t, "many") && m.Time == 0 && m.Prot&protExec != 0
	}
	for _, c := range rec.comms {
		if c.Comm == "many" && c.Time == 0 {
			names++
		}
	}
	if !mapped || names != 4 {
		t.Errorf("what ran before: mapping %v, %d names of threads, want 4", mapped, names)
	}
}

func TestRecordThreadAndDuration(t *testing.T) {
	target := start(t, program(t, "calls"), "1000000000")
	begin := time.Now()
	_, rec := record(t, Options{Target: Target{TIDs: []int{target.Process.Pid}}, Duration: 300 * time.Millisecond})
	if d := time.Since(begin); d < 300*time.Millisecond || d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	if len(rec.samples) < 30 {
		t.Errorf("%d samples", len(rec.samples))
	}
}

func TestRecordSystemWide(t *testing.T) {
	needRoot(t)
	target := start(t, program(t, "calls"), "1000000000")
	_, rec := record(t, Options{Target: Target{AllCPUs: true}, Duration: 2 * time.Second})
	pids := perSample(rec, func(s *perfdata.Sample) int32 { return s.PID })
	if pids[int32(target.Process.Pid)] < 30 {
		t.Errorf("%d samples of the busy program", pids[int32(target.Process.Pid)])
	}
	named := map[int32]bool{0: true, -1: true} // idle, and threads about to vanish
	for _, c := range rec.comms {
		named[c.CommPID] = true
	}
	// A process that ends between the look at /proc and the opening of the
	// events has been seen by neither.
	nameless, all := 0, 0
	for pid, n := range pids {
		all += n
		if !named[pid] {
			nameless += n
		}
	}
	if nameless*20 > all {
		t.Errorf("%d of %d samples are of processes without name", nameless, all)
	}
}

func TestRecordCPU(t *testing.T) {
	needRoot(t)
	_, rec := record(t, Options{Target: Target{CPUs: []int{0}, Command: []string{"taskset", "-c", "0", program(t, "calls"), "20000"}}})
	if cpus := perSample(rec, func(s *perfdata.Sample) uint32 { return s.CPU }); len(cpus) != 1 || cpus[0] == 0 {
		t.Errorf("samples by CPU %v, want CPU 0 only", cpus)
	}
}

func TestRecordCgroup(t *testing.T) {
	needRoot(t)
	var dir string
	for _, m := range cgroupMounts() {
		if d := filepath.Join(m, "perfcorrect-test"); m != "/" && os.Mkdir(d, 0o755) == nil {
			dir = d
			break
		}
	}
	if dir == "" {
		t.Skip("no cgroup can be made here")
	}
	t.Cleanup(func() { os.Remove(dir) })
	in := start(t, "sh", "-c", "echo $$ > "+dir+"/cgroup.procs && exec "+program(t, "calls")+" 1000000000")
	start(t, program(t, "calls"), "1000000000") // outside
	time.Sleep(100 * time.Millisecond)
	_, rec := record(t, Options{Target: Target{Cgroup: "perfcorrect-test"}, Duration: 300 * time.Millisecond})
	in.Process.Kill()
	in.Wait()
	pids := perSample(rec, func(s *perfdata.Sample) int32 { return s.PID })
	if len(pids) != 1 || pids[int32(in.Process.Pid)] < 20 {
		t.Errorf("samples by process %v, want %d alone", pids, in.Process.Pid)
	}
}

func TestRecordCompressedAndClock(t *testing.T) {
	r := startRecorder(t, order{Zstd: 3, Options: Options{Target: Target{Command: []string{program(t, "calls"), "50000"}}, Clock: &Clock{"monotonic", 1}}})
	before := time.Now()
	out := r.wait(t)
	if out.Err != "" {
		t.Fatal(out.Err)
	}
	rec := readRecording(t, r.order.Output)
	if rec.meta.Compressed == nil || uint64(len(rec.samples)) != out.Counts.Samples {
		t.Errorf("%d of %d samples, compressed: %v", len(rec.samples), out.Counts.Samples, rec.meta.Compressed)
	}
	d := rec.meta.ClockData
	if d == nil {
		t.Fatal("no clock data")
	}
	wall := int64(d.WallClockNS) - int64(d.ClockIDTimeNS) + int64(rec.samples[0].Time)
	if diff := time.Unix(0, wall).Sub(before).Abs(); diff > 30*time.Second {
		t.Errorf("the first sample was taken %v away from the test", diff)
	}
}

func TestRecordTracepoint(t *testing.T) {
	needRoot(t)
	o := command("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do true | cat; done")
	o.Events = "sched:sched_process_exec,task-clock:u"
	_, rec := record(t, o)
	n := perSample(rec, func(s *perfdata.Sample) string { return s.Event.Name })
	if n["sched:sched_process_exec"] != 10 {
		t.Errorf("samples %v, want 10 execs", n)
	}
	out, err := exec.Command("perf", "script", "-f", "-i", rec.path, "-F", "event,trace").Output()
	if err != nil || strings.Count(string(out), "filename=") != 10 {
		t.Errorf("perf script: %v\n%s", err, out)
	}
}
