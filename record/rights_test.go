package record

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err    error
		rights Rights
		wide   bool
		want   string
	}{
		{unix.EACCES, Rights{Paranoid: 2}, true, "kernel.perf_event_paranoid is 2, recording whole CPUs needs 0: sudo sysctl kernel.perf_event_paranoid=0"},
		{unix.EACCES, Rights{Paranoid: 4}, false, "kernel.perf_event_paranoid is 4, recording programs of your own needs 2"},
		{unix.EPERM, Rights{Paranoid: 4, Seccomp: true, Container: "Docker"}, false, "--cap-add PERFMON and --security-opt seccomp"},
		{unix.EPERM, Rights{Paranoid: 2, Perfmon: true, Seccomp: true, Container: "Podman"}, true, "--cap-add PERFMON"},
		{unix.EPERM, Rights{Paranoid: 2, Seccomp: true, Container: "Kubernetes"}, false, "securityContext"},
		{unix.EPERM, Rights{Root: true, Paranoid: 2}, true, "neither CAP_PERFMON nor CAP_SYS_ADMIN"},
		{unix.EPERM, Rights{Root: true, Perfmon: true, Paranoid: 2}, true, "security module"},
		{unix.EPERM, Rights{Paranoid: 1}, false, "belongs to another user"},
		{unix.ENOSYS, Rights{Seccomp: true}, false, "seccomp"},
		{unix.ENOSYS, Rights{}, false, "CONFIG_PERF_EVENTS"},
		{unix.EMFILE, Rights{MaxFiles: 1024}, false, "1024: raise it with ulimit -n"},
		{unix.ENFILE, Rights{}, false, "fs.file-max"},
		{unix.ENOENT, Rights{}, false, "-e cpu-clock"},
		{unix.EOPNOTSUPP, Rights{}, false, "does not have the event"},
		{unix.EBUSY, Rights{}, false, "nmi_watchdog"},
		{unix.EINVAL, Rights{}, false, "combination"},
		{unix.ESRCH, Rights{}, false, "has ended"},
	} {
		err := Explain(&OpenError{Event: &Event{Name: "cycles"}, PID: 7, CPU: 1, Err: c.err}, c.rights, c.wide)
		var h *HintError
		if !errors.As(err, &h) || !strings.Contains(h.Hint, c.want) {
			t.Errorf("%v with %+v: %v, want hint %q", c.err, c.rights, err, c.want)
		}
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), "cannot open event cycles, process 7, CPU 1") {
			t.Errorf("error %q", err)
		}
	}
	locked := lockedMemory(unix.EPERM, true)
	if got := Explain(locked, Rights{}, false); got != locked {
		t.Errorf("an explained error was explained again: %v", got)
	}
}
