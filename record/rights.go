package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// HintError is a failure one can do something about.
type HintError struct {
	Err  error
	Hint string
}

func (e *HintError) Error() string { return e.Err.Error() }
func (e *HintError) Unwrap() error { return e.Err }

// Rights are what decides whether perf_event_open is allowed.
type Rights struct {
	Paranoid   int  // kernel.perf_event_paranoid
	NoParanoid bool // the file is missing: no perf events in the kernel
	Perfmon    bool // CAP_PERFMON or CAP_SYS_ADMIN
	Root       bool
	Seccomp    bool // a system call filter is active
	Container  string
	MaxFiles   uint64
	LockKiB    uint64 // kernel.perf_event_mlock_kb
}

const (
	capSysAdmin = 21
	capPerfmon  = 38
)

func readRights() Rights {
	r := Rights{Root: os.Geteuid() == 0, LockKiB: sysctl("perf_event_mlock_kb")}
	b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	r.NoParanoid = err != nil
	r.Paranoid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	b, _ = os.ReadFile("/proc/self/status")
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "CapEff":
			caps, _ := strconv.ParseUint(value, 16, 64)
			r.Perfmon = caps&(1<<capSysAdmin|1<<capPerfmon) != 0
		case "Seccomp":
			r.Seccomp = value == "2"
		}
	}
	switch {
	case exists("/.dockerenv"):
		r.Container = "Docker"
	case exists("/run/.containerenv"):
		r.Container = "Podman"
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		r.Container = "Kubernetes"
	}
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil {
		r.MaxFiles = lim.Cur
	}
	return r
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Explain says which limit an error of perf_event_open or of mapping a ring
// buffer comes from, and the exact way out. wide: the event was to count a
// CPU whatever runs there.
func Explain(err error, r Rights, wide bool) error {
	hint := ""
	switch {
	case err == nil || errors.As(err, new(*HintError)):
		return err
	case errors.Is(err, unix.ENOSYS):
		if r.Seccomp {
			hint = "a system call filter (seccomp) hides perf_event_open: " + containerHint(r)
		} else {
			hint = "this kernel was built without perf events (CONFIG_PERF_EVENTS)"
		}
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		hint = permissionHint(r, wide)
	case errors.Is(err, unix.EMFILE):
		hint = fmt.Sprintf("too many events for the limit of open files, %d: raise it with ulimit -n, or record fewer threads or CPUs (-C)", r.MaxFiles)
	case errors.Is(err, unix.ENFILE):
		hint = "the system's limit of open files is reached: sysctl fs.file-max"
	case errors.Is(err, unix.ESRCH):
		hint = "the process has ended"
	case errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP):
		hint = "this machine or its PMU does not have the event, or not with these flags: perf list, or -e cpu-clock which works everywhere"
	case errors.Is(err, unix.EBUSY):
		hint = "another user has the counter, for example the NMI watchdog: sysctl kernel.nmi_watchdog=0"
	case errors.Is(err, unix.EINVAL):
		hint = "the kernel does not take this combination: try fewer flags, or -e cpu-clock"
	case errors.Is(err, unix.ENOSPC):
		hint = "no counter or breakpoint is left: record fewer events"
	case errors.Is(err, unix.ENOMEM):
		hint = "not enough memory: smaller ring buffers (-m 128K)"
	default:
		return err
	}
	return &HintError{err, hint}
}

// permissionHint follows the order in which the kernel checks
// (perf_event_open and perf_allow_kernel, perf_allow_cpu in
// kernel/events/core.c).
func permissionHint(r Rights, wide bool) string {
	if r.Perfmon || r.Root && !r.Seccomp {
		if r.Seccomp || r.Container != "" {
			return "the right is there, so a system call filter (seccomp) or security module refuses it: " + containerHint(r)
		}
		if !r.Perfmon {
			return "root here has neither CAP_PERFMON nor CAP_SYS_ADMIN: " + containerHint(r)
		}
		return "the right is there, so a security module (SELinux, AppArmor, lockdown) refuses it, or the process belongs to somebody else"
	}
	if r.Seccomp && r.Container != "" {
		return containerHint(r)
	}
	need := 2
	if wide {
		need = 0
	}
	if r.Paranoid > need {
		what := "programs of your own"
		if wide {
			what = "whole CPUs"
		}
		s := fmt.Sprintf("kernel.perf_event_paranoid is %d, recording %s needs %d: sudo sysctl kernel.perf_event_paranoid=%d, or sudo setcap cap_perfmon=ep perfcorrect", r.Paranoid, what, need, need)
		if wide {
			s += ", or record one program (perfcorrect record PROGRAM)"
		}
		return s
	}
	return "the process belongs to another user, or gained rights when it started: record it as that user or as root, or sudo setcap cap_perfmon,cap_sys_ptrace=ep perfcorrect"
}

func containerHint(r Rights) string {
	switch r.Container {
	case "Docker", "Podman":
		return "start the container with --cap-add PERFMON and --security-opt seccomp=unconfined (or a profile that allows perf_event_open)"
	case "Kubernetes":
		return "give the pod securityContext.capabilities.add: [PERFMON] and seccompProfile.type: Unconfined"
	}
	return "give the container or service CAP_PERFMON and a filter that allows perf_event_open"
}
