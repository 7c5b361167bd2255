package record

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

func nativeU64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

// poller waits for rings to fill, processes to end and the recorder's own
// goroutines.
type poller struct {
	epoll   int
	self    int               // eventfd: somebody called wake
	waiting map[int]*instance // by descriptor: whose end of file means that its thread has ended
	rest    map[int][]*instance
	pidfds  map[int]bool
	events  [64]unix.EpollEvent
}

func newPoller(r *recorder) (*poller, error) {
	p := &poller{waiting: map[int]*instance{}, rest: map[int][]*instance{}, pidfds: map[int]bool{}, self: -1}
	var err error
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	if p.self, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		p.close()
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	p.add(p.self)
	for _, in := range r.instances {
		if in.event == r.plan.Tracking {
			p.rest[in.cpu] = append(p.rest[in.cpu], in)
		}
	}
	for cpu := range p.rest {
		p.watch(cpu)
	}
	if !r.Target.Wide() && r.child == nil {
		p.watchProcesses(r.Target.PIDs, 0)
		p.watchProcesses(r.Target.TIDs, unix.O_EXCL) // PIDFD_THREAD, Linux 6.9
	}
	return p, nil
}

func (p *poller) add(fd int) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// watch waits for the ring of a CPU by the next of its events whose thread
// lives: an event whose thread has ended is always ready, and tells nothing.
func (p *poller) watch(cpu int) {
	for len(p.rest[cpu]) > 0 {
		in := p.rest[cpu][0]
		p.rest[cpu] = p.rest[cpu][1:]
		fds := []unix.PollFd{{Fd: int32(in.fd), Events: unix.POLLIN}}
		if n, _ := unix.Poll(fds, 0); n > 0 && fds[0].Revents&unix.POLLHUP != 0 {
			continue
		}
		if p.add(in.fd) == nil {
			p.waiting[in.fd] = in
			return
		}
	}
}

func (p *poller) watchProcesses(pids []int, flags int) {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, flags)
		if err == unix.ESRCH {
			continue
		}
		if err != nil { // an older kernel: the end of all events tells it
			continue
		}
		p.pidfds[fd] = true
		p.add(fd)
	}
}

// wait waits until something happens or the time has passed. ended: all that
// was recorded has.
func (p *poller) wait(d time.Duration) (ended bool, err error) {
	ms := int(max(d, 0).Milliseconds())
	if d > 0 && ms == 0 {
		ms = 1
	}
	n, err := unix.EpollWait(p.epoll, p.events[:], ms)
	if err == unix.EINTR {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("epoll_wait: %w", err)
	}
	hadPids := len(p.pidfds) > 0
	for _, ev := range p.events[:n] {
		fd := int(ev.Fd)
		switch in := p.waiting[fd]; {
		case fd == p.self:
			var b [8]byte
			unix.Read(fd, b[:])
		case p.pidfds[fd]:
			unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil)
			unix.Close(fd)
			delete(p.pidfds, fd)
		case in != nil && ev.Events&unix.EPOLLHUP != 0:
			unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil)
			delete(p.waiting, fd)
			p.watch(in.cpu)
		}
	}
	return hadPids && len(p.pidfds) == 0 || len(p.waiting) == 0, nil
}

// wake ends a wait; any goroutine may call it.
func (p *poller) wake() {
	var b [8]byte
	b[0] = 1
	unix.Write(p.self, b[:])
}

func (p *poller) close() {
	for fd := range p.pidfds {
		unix.Close(fd)
	}
	if p.self >= 0 {
		unix.Close(p.self)
	}
	unix.Close(p.epoll)
}
