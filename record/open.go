package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// instance is an event opened on one CPU for one thread, or for all (TID -1).
type instance struct {
	event *Event
	fd    int
	id    uint64
	cpu   int
	tid   int
}

// opened are the events of a recording with their ring buffers.
type opened struct {
	plan      *Plan
	opt       *Options
	cpus      []int // that are online and recorded
	rings     []*ring
	byCPU     map[int]*ring
	instances []*instance
	ringSize  int
	cgroup    int // descriptor, -1 without
}

// Sizes of a ring buffer, bytes. Locked memory is limited for users without
// CAP_IPC_LOCK to kernel.perf_event_mlock_kb for each CPU, 516 by default:
// 512 and the control page.
const (
	defaultRing = 2 << 20
	smallRing   = 512 << 10
	minRing     = 64 << 10
)

// open opens the plan's events for tids (-1: for all) on all CPUs, and maps
// their rings.
func (o *opened) open(tids []int) error {
	for _, tid := range tids {
		for _, cpu := range o.cpus {
			err := o.openOn(tid, cpu)
			if errors.Is(err, unix.ESRCH) && len(tids) > 1 {
				break // the thread ended meanwhile
			}
			if err != nil {
				return err
			}
		}
	}
	if len(o.instances) == 0 {
		return unix.ESRCH
	}
	return nil
}

// openOn opens all groups on one CPU for one thread. Either all of them are
// open in the end or none.
func (o *opened) openOn(tid, cpu int) (err error) {
	first := len(o.instances)
	defer func() {
		if err != nil {
			o.closeFrom(first)
		}
	}()
	pid, flags := tid, 0
	if o.cgroup >= 0 {
		pid, flags = o.cgroup, unix.PERF_FLAG_PID_CGROUP
	}
	for _, g := range o.plan.Groups {
		leader := -1
		for _, ev := range g.Events {
			if ev.CPUs != nil && !slices.Contains(ev.CPUs, cpu) {
				continue
			}
			fd, err := openEvent(ev, pid, cpu, leader, flags)
			if err != nil {
				return err
			}
			in := &instance{event: ev, fd: fd, cpu: cpu, tid: tid}
			o.instances = append(o.instances, in)
			if leader < 0 {
				leader = fd
			}
			if in.id, err = eventID(fd); err != nil {
				return err
			}
			if err := o.attach(in); err != nil {
				return err
			}
		}
	}
	return nil
}

// attach connects an event to the ring of its CPU, and makes that if it is
// the first.
func (o *opened) attach(in *instance) error {
	if r := o.byCPU[in.cpu]; r != nil {
		if err := ioctl(in.fd, unix.PERF_EVENT_IOC_SET_OUTPUT, r.fd); err != nil {
			return fmt.Errorf("PERF_EVENT_IOC_SET_OUTPUT of %s: %w", in.event.Name, err)
		}
		return nil
	}
	r, err := o.newRing(in)
	if err != nil {
		return err
	}
	o.rings = append(o.rings, r)
	o.byCPU[in.cpu] = r
	return nil
}

// newRing takes the size asked for, or the largest of the defaults that the
// limit of locked memory allows.
func (o *opened) newRing(in *instance) (*ring, error) {
	if o.ringSize == 0 {
		o.ringSize = o.opt.RingSize
	}
	asked := o.opt.RingSize != 0
	if o.ringSize == 0 {
		o.ringSize = defaultRing
	}
	for {
		r, err := newRing(in.fd, in.cpu, o.ringSize)
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, unix.EPERM) || asked || o.ringSize <= minRing {
			return nil, lockedMemory(err, asked)
		}
		if o.ringSize > smallRing {
			o.ringSize = smallRing
		} else {
			o.ringSize /= 2
		}
		if len(o.rings) > 0 && o.ringSize < smallRing {
			// Rings of one recording may differ in size.
			continue
		}
	}
}

func lockedMemory(err error, asked bool) error {
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	hint := "the limit of locked memory is reached: smaller buffers (-m 128K), or raise kernel.perf_event_mlock_kb or ulimit -l"
	if asked {
		hint = "more than the limit of locked memory allows: a smaller -m, or raise kernel.perf_event_mlock_kb or ulimit -l"
	}
	return &HintError{err, hint}
}

// enable starts all groups.
func (o *opened) enable() error {
	for _, in := range o.instances {
		if !leads(in.event, o.plan) || in.event.isOneOf(o.plan.Calls) {
			continue
		}
		if err := ioctl(in.fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("PERF_EVENT_IOC_ENABLE of %s: %w", in.event.Name, err)
		}
	}
	return nil
}

// disable stops all groups, with what was inherited from them.
func (o *opened) disable() {
	for _, in := range o.instances {
		ioctl(in.fd, unix.PERF_EVENT_IOC_DISABLE, 0)
	}
}

func leads(ev *Event, p *Plan) bool {
	for _, g := range p.Groups {
		if g.Events[0] == ev {
			return true
		}
	}
	return false
}

func (ev *Event) isOneOf(list []*Event) bool { return slices.Contains(list, ev) }

func (o *opened) closeFrom(first int) {
	for _, in := range o.instances[first:] {
		if r := o.byCPU[in.cpu]; r != nil && r.fd == in.fd {
			r.close()
			delete(o.byCPU, in.cpu)
			o.rings = slices.DeleteFunc(o.rings, func(x *ring) bool { return x == r })
		}
		unix.Close(in.fd)
	}
	o.instances = o.instances[:first]
}

func (o *opened) close() {
	o.closeFrom(0)
	if o.cgroup >= 0 {
		unix.Close(o.cgroup)
	}
}

// meta describes the open events for the recording.
func (o *opened) meta() *perfdata.Meta {
	m := &perfdata.Meta{IDs: map[uint64]perfdata.Instance{}}
	byEvent := map[*Event]*perfdata.Event{}
	for _, g := range o.plan.Groups {
		var members []*perfdata.Event
		for _, ev := range g.Events {
			p := &perfdata.Event{Attr: ev.Attr, Name: ev.Name, Index: len(m.Events)}
			m.Events = append(m.Events, p)
			members = append(members, p)
			byEvent[ev] = p
		}
		for _, p := range members {
			p.Leader = members[0]
		}
		members[0].Group = members
	}
	for _, in := range o.instances {
		p := byEvent[in.event]
		p.IDs = append(p.IDs, in.id)
		m.IDs[in.id] = perfdata.Instance{CPU: int32(in.cpu), TID: int32(in.tid)}
	}
	return m
}

// recordedCPUs are the CPUs online, and of them those asked for.
func recordedCPUs(m *Machine, t *Target) ([]int, error) {
	text, err := readText(m.root, "sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	online, err := ParseCPUList(text)
	if err != nil || len(t.CPUs) == 0 {
		return online, err
	}
	for _, c := range t.CPUs {
		if !slices.Contains(online, c) {
			return nil, fmt.Errorf("CPU %d is not online: there are %s", c, text)
		}
	}
	return t.CPUs, nil
}

// threadsOf lists the threads of a process.
func threadsOf(proc fs.FS, pid int) ([]int, error) {
	entries, err := fs.ReadDir(proc, fmt.Sprintf("%d/task", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no process %d", pid)
	}
	if err != nil {
		return nil, err
	}
	var tids []int
	for _, e := range entries {
		if tid, ok := number(e.Name()); ok {
			tids = append(tids, tid)
		}
	}
	slices.SortFunc(tids, cmp.Compare)
	return tids, nil
}
