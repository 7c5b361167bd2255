package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A recorder that is killed leaves what it had written, and so may its program.
func TestKilledRecorder(t *testing.T) {
	target := start(t, program(t, "calls"), "1000000000")
	r := startRecorder(t, order{Options: Options{Target: Target{PIDs: []int{target.Process.Pid}}}})
	time.Sleep(2500 * time.Millisecond)
	r.cmd.Process.Kill()
	r.cmd.Wait()
	rec := readRecording(t, r.order.Output)
	if len(rec.samples) < 200 {
		t.Errorf("%d samples were left (damage: %s)", len(rec.samples), rec.damage)
	}
	if n := len(script(t, r.order.Output)); n != len(rec.samples) {
		t.Errorf("perf script reads %d samples, we %d", n, len(rec.samples))
	}
}

func TestKilledTarget(t *testing.T) {
	out, rec := record(t, command("sh", "-c", program(t, "calls")+" 5000; kill -KILL $$"))
	if out.Status != 128+9 {
		t.Errorf("status %d, want 137", out.Status)
	}
	if len(rec.samples) == 0 {
		t.Error("no samples")
	}
}

// Targets that end before anything is recorded.
func TestShortLivedTarget(t *testing.T) {
	for range 5 {
		out, rec := record(t, command("true"))
		if out.Status != 0 || len(rec.exits) != 1 {
			t.Errorf("status %d, %d exits", out.Status, len(rec.exits))
		}
	}
}

func TestProgramThatCannotRun(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(dir+"/garbage", []byte("\x7fELF garbage"), 0o755)
	os.WriteFile(dir+"/script", []byte("exit 3\n"), 0o755)
	os.WriteFile(dir+"/bad", []byte("#!/nonexistent/interpreter\n"), 0o755)
	for _, c := range []struct{ program, want string }{
		{"no-such-program-anywhere", "no such program in $PATH"},
		{dir + "/nothing", "no such file"},
		{"/etc/passwd", "permission denied"},
		{dir, "is a directory"},
		{dir + "/bad", "no such file"},
	} {
		r := startRecorder(t, order{Options: command(c.program)})
		out := r.wait(t)
		if !strings.Contains(out.Err, c.want) {
			t.Errorf("%s: error %q, want %q", c.program, out.Err, c.want)
		}
		if exists(r.order.Output) {
			t.Errorf("%s: a recording of nothing was left", c.program)
		}
	}
	// A script without #! is run as a shell would.
	if out, _ := record(t, command(dir+"/script")); out.Status != 3 {
		t.Errorf("script: status %d, want 3", out.Status)
	}
}

func TestFullDisk(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=600k"); err != nil {
		t.Skip("no tmpfs can be mounted: ", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	done := filepath.Join(t.TempDir(), "done")
	r := startRecorder(t, order{Output: dir + "/perf.data", Options: command("sh", "-c", program(t, "calls")+" 800000; touch "+done)})
	out := r.wait(t)
	if !strings.Contains(out.Err, "no space left on the device") || out.Hint == "" {
		t.Errorf("error %q, hint %q", out.Err, out.Hint)
	}
	if len(out.Said) != 1 || !strings.Contains(out.Said[0], "the program runs on") {
		t.Errorf("said %q", out.Said)
	}
	if !exists(done) {
		t.Error("the program did not run to its end")
	}
	if rec := readRecording(t, r.order.Output); len(rec.samples) < 200 {
		t.Errorf("%d samples were saved", len(rec.samples))
	}
}

func TestClosedPipe(t *testing.T) {
	mayRecord(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := `{"Output":"-","Outcome":"` + dir + `/outcome","Options":{"Target":{"Command":["` + program(t, "calls") + `","200000"]}}}`
	self, _ := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), recorderEnv+"="+text)
	cmd.Stdout = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	read.Read(make([]byte, 100))
	read.Close()
	cmd.Wait()
	b, err := os.ReadFile(dir + "/outcome")
	if err != nil || !strings.Contains(string(b), "closed by its reader") {
		t.Errorf("outcome %s, %v", b, err)
	}
}

// A pipe carries the same as a file, and nothing of the program's own output.
func TestPipe(t *testing.T) {
	mayRecord(t)
	dir := t.TempDir()
	text := `{"Output":"-","Outcome":"` + dir + `/outcome","Options":{"Target":{"Command":["sh","-c","echo noise; ` + program(t, "calls") + ` 50000"]}}}`
	self, _ := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), recorderEnv+"="+text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	path := dir + "/pipe.data"
	os.WriteFile(path, out, 0o600)
	rec := readRecording(t, path)
	if !rec.meta.Pipe || len(rec.samples) < 20 || rec.damage != "" {
		t.Errorf("pipe %v, %d samples, damage %q", rec.meta.Pipe, len(rec.samples), rec.damage)
	}
	if len(rec.meta.BuildIDs) == 0 {
		t.Error("no build IDs")
	}
}

func TestOldFileIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "perf.data")
	os.WriteFile(path, []byte("precious"), 0o644)
	r := startRecorder(t, order{Output: path, Options: command("true")})
	if out := r.wait(t); out.Err != "" {
		t.Fatal(out.Err)
	}
	b, err := os.ReadFile(path + ".old")
	if string(b) != "precious" {
		t.Errorf("perf.data.old: %q, %v", b, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("new file: %v, %v", info, err)
	}
}

func TestFileLimit(t *testing.T) {
	target := start(t, program(t, "many"), "60", "0", "100000")
	time.Sleep(200 * time.Millisecond)
	r := startRecorder(t, order{Options: Options{Target: Target{PIDs: []int{target.Process.Pid}}, Duration: time.Second}}, "prlimit", "--nofile=40:40")
	out := r.wait(t)
	target.Process.Kill()
	if !strings.Contains(out.Err, "too many open files") || !strings.Contains(out.Hint, "ulimit -n") {
		t.Errorf("error %q, hint %q", out.Err, out.Hint)
	}
}

// asNobody runs the recorder without rights.
func asNobody(t *testing.T, o order, limits ...string) *outcome {
	t.Helper()
	needRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test program lies in a directory of root's.
	copied := filepath.Join(t.TempDir(), "test")
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(copied, b, 0o755)
	for d := filepath.Dir(copied); strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	wrap := append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"}, limits...)
	wrap = append(wrap, "sh", "-c", `exec "`+copied+`"`)
	r := startRecorder(t, o, wrap...)
	for d := filepath.Dir(r.order.Output); strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		os.Chmod(d, 0o777)
	}
	return r.wait(t)
}

func TestWithoutRights(t *testing.T) {
	needRoot(t)
	if p := readRights().Paranoid; p != 2 {
		t.Skipf("kernel.perf_event_paranoid is %d: the test wants its default, 2", p)
	}
	out := asNobody(t, order{Options: command(program(t, "calls"), "50000")})
	if out.Err != "" || out.Counts.Samples < 20 || !strings.Contains(out.Line, "user code only") {
		t.Errorf("user code: %+v", out)
	}
	out = asNobody(t, order{Options: Options{Target: Target{AllCPUs: true}}})
	if !strings.Contains(out.Hint, "kernel.perf_event_paranoid is 2, recording whole CPUs needs 0") {
		t.Errorf("system-wide: %+v", out)
	}
	o := command(program(t, "calls"), "50000")
	o.CountCalls = []string{"work"}
	if out = asNobody(t, order{Options: o}); !strings.Contains(out.Hint, "root") {
		t.Errorf("probes: %+v", out)
	}
	out = asNobody(t, order{Options: Options{Target: Target{PIDs: []int{1}}}})
	if !strings.Contains(out.Hint, "belongs to another user") {
		t.Errorf("foreign process: %+v", out)
	}
	// kernel.perf_event_mlock_kb is for each CPU; beyond it counts against ulimit -l.
	o = command("true")
	o.RingSize = 64 << 20
	out = asNobody(t, order{Options: o}, "prlimit", "--memlock=0:0")
	if !strings.Contains(out.Hint, "locked memory") {
		t.Errorf("large buffers: %+v", out)
	}
	out = asNobody(t, order{Options: command(program(t, "calls"), "5000")}, "prlimit", "--memlock=0:0")
	if out.Err != "" {
		t.Errorf("default buffers without ulimit -l: %+v", out)
	}
}

// Signals to the recorder reach the program, whose end they decide.
func TestSignals(t *testing.T) {
	script := `trap 'exit 42' TERM; trap 'exit 43' USR1; trap 'exit 44' INT; while :; do sleep 0.05; done`
	for sig, want := range map[syscall.Signal]int{syscall.SIGTERM: 42, syscall.SIGUSR1: 43, syscall.SIGINT: 44} {
		r := startRecorder(t, order{Options: command("sh", "-c", script)}, "setsid", "-w")
		time.Sleep(700 * time.Millisecond)
		pid := childOf(t, r.cmd.Process.Pid, "record.test")
		syscall.Kill(pid, sig)
		if out := r.wait(t); out.Status != want || out.Err != "" {
			t.Errorf("%v: status %d, want %d (%s)", sig, out.Status, want, out.Err)
		}
	}
}

// childOf finds the recorder behind a wrapper.
func childOf(t *testing.T, pid int, comm string) int {
	t.Helper()
	for range 50 {
		b, _ := os.ReadFile("/proc/" + itoa(int32(pid)) + "/comm")
		if strings.HasPrefix(strings.TrimSpace(string(b)), comm) {
			return pid
		}
		kids, _ := os.ReadFile("/proc/" + itoa(int32(pid)) + "/task/" + itoa(int32(pid)) + "/children")
		for f := range strings.FieldsSeq(string(kids)) {
			if n, ok := number(f); ok {
				pid = n
				break
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the recorder's process is not to be found")
	return 0
}

func TestNoSuchProcess(t *testing.T) {
	r := startRecorder(t, order{Options: Options{Target: Target{PIDs: []int{1 << 22}}}})
	if out := r.wait(t); !strings.Contains(out.Err, "no process") {
		t.Errorf("error %q", out.Err)
	}
}
