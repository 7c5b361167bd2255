package record

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// kernelAttr is perf_event_attr as the kernel takes it: x/sys/unix has it up
// to sig_data (PERF_ATTR_SIZE_VER7), config3 follows.
type kernelAttr struct {
	unix.PerfEventAttr
	config3 uint64
}

const (
	attrSize7 = 128
	attrSize8 = 136
)

func newKernelAttr(a *perfdata.Attr) *kernelAttr {
	k := &kernelAttr{config3: a.Config3}
	k.PerfEventAttr = unix.PerfEventAttr{
		Type: uint32(a.Type), Size: attrSize7, Config: a.Config, Sample: a.SamplePeriod,
		Sample_type: uint64(a.SampleType), Read_format: uint64(a.ReadFormat), Bits: uint64(a.Flags),
		Wakeup: a.WakeupEvents, Bp_type: a.BPType, Ext1: a.Config1, Ext2: a.Config2,
		Branch_sample_type: uint64(a.BranchSampleType),
		Sample_regs_user:   a.SampleRegsUser, Sample_stack_user: a.SampleStackUser,
		Clockid: a.ClockID, Sample_regs_intr: a.SampleRegsIntr,
		Aux_watermark: a.AuxWatermark, Sample_max_stack: a.SampleMaxStack,
	}
	if a.Config3 != 0 {
		k.Size = attrSize8
	}
	return k
}

// openEvent is perf_event_open(2). group is the leader's descriptor or -1.
func openEvent(ev *Event, pid, cpu, group int, flags int) (int, error) {
	k := newKernelAttr(&ev.Attr)
	var pin runtime.Pinner
	defer pin.Unpin()
	if ev.path != "" {
		path := append([]byte(ev.path), 0)
		pin.Pin(&path[0])
		k.Ext1 = uint64(uintptr(unsafe.Pointer(&path[0])))
	}
	for {
		fd, err := unix.PerfEventOpen(&k.PerfEventAttr, pid, cpu, group, flags|unix.PERF_FLAG_FD_CLOEXEC)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil {
			return -1, &OpenError{Event: ev, PID: pid, CPU: cpu, Err: err}
		}
		return fd, nil
	}
}

// OpenError is a perf_event_open that failed.
type OpenError struct {
	Event    *Event
	PID, CPU int
	Err      error
}

func (e *OpenError) Error() string {
	where := ""
	if e.PID >= 0 {
		where += fmt.Sprintf(", process %d", e.PID)
	}
	if e.CPU >= 0 {
		where += fmt.Sprintf(", CPU %d", e.CPU)
	}
	return fmt.Sprintf("cannot open event %s%s: %v", e.Event.Name, where, e.Err)
}

func (e *OpenError) Unwrap() error { return e.Err }

// eventID asks for the number that names the event in samples.
func eventID(fd int) (uint64, error) {
	var id uint64
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_ID, uintptr(unsafe.Pointer(&id)))
	if errno != 0 {
		return 0, fmt.Errorf("PERF_EVENT_IOC_ID: %w", errno)
	}
	return id, nil
}

// setPeriod changes the period of an event, or its frequency if it has one.
func setPeriod(fd int, period uint64) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_PERIOD, uintptr(unsafe.Pointer(&period)))
	if errno != 0 {
		return fmt.Errorf("PERF_EVENT_IOC_PERIOD: %w", errno)
	}
	return nil
}

func ioctl(fd int, req uint, arg int) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(req), uintptr(arg))
	if errno != 0 {
		return errno
	}
	return nil
}
