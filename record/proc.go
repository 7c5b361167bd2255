package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

func number(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0
}

// existing makes the records that tell what processes were and had mapped
// before the recording began, from /proc (proc stands for it). The kernel has
// no records of that; perf makes the same (tools/perf/util/synthetic-events.c).
// Their time is zero, which readers take for the beginning.
type existing struct {
	proc fs.FS
	emit func(perfdata.Record) error
	seen func(*perfdata.Mmap) // for the build IDs
	gone int                  // processes that ended while they were read
}

// all describes every process of the machine, or of the container.
func (x *existing) all(between func() error) error {
	entries, err := fs.ReadDir(x.proc, ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if pid, ok := number(e.Name()); ok {
			if err := x.process(pid); err != nil {
				return err
			}
			if err := between(); err != nil {
				return err
			}
		}
	}
	return nil
}

// process describes a process, its threads, and what it has mapped executable.
func (x *existing) process(pid int) error {
	tids, err := threadsOf(x.proc, pid)
	if err != nil {
		x.gone++
		return nil
	}
	ppid := x.parent(pid)
	for _, tid := range tids {
		if err := x.thread(pid, tid, ppid); err != nil {
			return err
		}
		if tid == pid {
			if err := x.maps(pid); err != nil {
				return err
			}
		}
	}
	return nil
}

// parent reads the parent's number from stat: behind the name in parentheses,
// which may hold anything, the state and the parent.
func (x *existing) parent(pid int) int {
	b, _ := fs.ReadFile(x.proc, fmt.Sprintf("%d/stat", pid))
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 2 {
		return 0
	}
	n, _ := number(f[1])
	return n
}

func (x *existing) thread(pid, tid, ppid int) error {
	comm, err := fs.ReadFile(x.proc, fmt.Sprintf("%d/task/%d/comm", pid, tid))
	if err != nil {
		x.gone++
		return nil
	}
	parent, parentThread := int32(ppid), int32(ppid)
	if tid != pid {
		parent, parentThread = int32(pid), int32(pid)
	}
	fork := &perfdata.Task{
		Common:  perfdata.Common{Type: perfdata.TypeFork, Misc: perfdata.MiscForkExec},
		TaskPID: int32(pid), TaskTID: int32(tid), TaskPPID: parent, TaskPTID: parentThread,
	}
	if err := x.emit(fork); err != nil {
		return err
	}
	return x.emit(&perfdata.Comm{
		Common:  perfdata.Common{Type: perfdata.TypeComm},
		CommPID: int32(pid), CommTID: int32(tid), Comm: strings.TrimSuffix(string(comm), "\n"),
	})
}

// maps describes the executable mappings, those that samples can be in.
func (x *existing) maps(pid int) error {
	b, err := fs.ReadFile(x.proc, fmt.Sprintf("%d/maps", pid))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			x.gone++ // ESRCH
		}
		return nil
	}
	for line := range strings.Lines(string(b)) {
		m, ok := parseMapsLine(line)
		if !ok || m.Prot&protExec == 0 {
			continue
		}
		m.MapPID, m.MapTID = int32(pid), int32(pid)
		if x.seen != nil {
			x.seen(m)
		}
		if err := x.emit(m); err != nil {
			return err
		}
	}
	return nil
}

const (
	protRead  = 1
	protWrite = 2
	protExec  = 4

	mapShared  = 1
	mapPrivate = 2
)

// parseMapsLine reads a line of /proc/PID/maps:
//
//	55d0c1e00000-55d0c1e02000 r-xp 00001000 08:01 1234   /usr/bin/true
func parseMapsLine(line string) (*perfdata.Mmap, bool) {
	var f [5]string
	rest := strings.TrimSuffix(line, "\n")
	for i := range f {
		var ok bool
		if f[i], rest, ok = strings.Cut(rest, " "); !ok && i < 4 {
			return nil, false
		}
	}
	from, to, ok := strings.Cut(f[0], "-")
	start, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	pgoff, err3 := strconv.ParseUint(f[2], 16, 64)
	maj, min, ok2 := strings.Cut(f[3], ":")
	major, err4 := strconv.ParseUint(maj, 16, 32)
	minor, err5 := strconv.ParseUint(min, 16, 32)
	ino, err6 := strconv.ParseUint(f[4], 10, 64)
	if !ok || !ok2 || errors.Join(err1, err2, err3, err4, err5, err6) != nil || end < start || len(f[1]) < 4 {
		return nil, false
	}
	m := &perfdata.Mmap{
		Common: perfdata.Common{Type: perfdata.TypeMmap2, Misc: perfdata.MiscUser},
		Addr:   start, Len: end - start, Pgoff: pgoff, Maj: uint32(major), Min: uint32(minor), Ino: ino,
		Filename: strings.TrimLeft(rest, " "),
	}
	for i, bit := range []uint32{protRead, protWrite, protExec} {
		if f[1][i] != '-' {
			m.Prot |= bit
		}
	}
	m.MapFlags = mapPrivate
	if f[1][3] == 's' {
		m.MapFlags = mapShared
	}
	if m.Filename == "" {
		m.Filename = "//anon" // as the kernel names it in its records
	}
	return m, true
}
