package session

import (
	"strconv"

	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// Thread is a thread of the recorded system. One that has exited and one that
// gets its number later are different Threads.
type Thread struct {
	PID, TID int32
	// Comm is the thread's name at the time of the current sample. perf's name
	// for a thread whose name is not known is ":TID".
	Comm string

	named     bool // Comm is from a record
	exited    bool
	process   *process
	instances []*instance // events inherited by this thread, see Session.instance
	sched     sched
	calls     unwind.CallStack // of branch records, if there are such
}

// process is what the threads of a process share.
type process struct {
	pid     int32
	space   *space
	threads int
}

// keptExited is how many exited threads are remembered: a thread still runs,
// and is still sampled, for a while after the kernel has written its EXIT
// record (kernel/exit.c, do_exit calls perf_event_exit_task half way).
const keptExited = 1024

// threads is the table of threads by number.
type threads struct {
	byTID     map[int32]*Thread
	processes map[int32]*process
	last      *Thread
	exited    []*Thread // ring of the latest exited ones
	next      int       // of the ring
}

func newThreads() threads {
	t := threads{byTID: map[int32]*Thread{}, processes: map[int32]*process{}}
	// Every CPU's idle thread has number 0.
	t.byTID[0] = &Thread{Comm: "swapper", named: true, process: t.process(0)}
	t.byTID[0].process.threads++
	return t
}

// process returns the process with this number, a new one if there is none.
func (t *threads) process(pid int32) *process {
	p := t.processes[pid]
	if p == nil {
		p = &process{pid: pid, space: &space{}}
		t.processes[pid] = p
	}
	return p
}

// thread returns the thread with these numbers. One that no record has
// announced, or whose number was another process's before, is made anew. The
// kernel gives -1 for a thread that has lost its number on its way out, and a
// sample of the idle thread may come with the process that ran before.
func (s *Session) thread(pid, tid int32) *Thread {
	if tid < 0 {
		return s.nobody
	}
	t := &s.threads
	if l := t.last; l != nil && l.TID == tid && l.PID == pid {
		return l
	}
	th := t.byTID[tid]
	if th == nil || th.PID != pid && pid != -1 && tid != 0 {
		th = s.newThread(pid, tid, t.process(pid))
	}
	t.last = th
	return th
}

// newThread enters a thread, replacing the one that had its number.
func (s *Session) newThread(pid, tid int32, p *process) *Thread {
	t := &s.threads
	if old := t.byTID[tid]; old != nil {
		s.dropThread(old)
	}
	th := &Thread{PID: pid, TID: tid, process: p, Comm: ":" + strconv.Itoa(int(tid))}
	t.byTID[tid] = th
	if t.processes[p.pid] != p { // dropped with its last thread just now
		t.processes[p.pid] = p
	}
	p.threads++
	s.stats.Threads++
	return th
}

// dropThread forgets a thread, and its process with the last one.
func (s *Session) dropThread(th *Thread) {
	t := &s.threads
	if t.byTID[th.TID] == th {
		delete(t.byTID, th.TID)
	}
	if t.last == th {
		t.last = nil
	}
	th.instances = nil
	if th.process.threads--; th.process.threads == 0 {
		s.live -= th.process.space.copied
		th.process.space.copied = 0
		if t.processes[th.process.pid] == th.process {
			delete(t.processes, th.process.pid)
		}
	}
}

func (s *Session) comm(r *perfdata.Comm) {
	th := s.thread(r.CommPID, r.CommTID)
	if th == s.nobody {
		return
	}
	th.Comm, th.named = r.Comm, true
	if r.Misc&perfdata.MiscCommExec != 0 {
		s.exec(th)
	}
}

// exec empties the address space. The kernel announces the new name before it
// maps the new program (fs/exec.c, begin_new_exec), so what is mapped now is
// the old one's, for instance perf's own, of which the recorded program was a
// fork. All other threads are gone; if one of them called exec, it has taken
// over the number of the first.
func (s *Session) exec(th *Thread) {
	th.exited = false
	th.calls = unwind.CallStack{}
	if th.process.threads > 1 {
		for _, other := range s.threads.byTID {
			if other != th && other.process == th.process {
				s.dropThread(other)
			}
		}
	}
	sp := th.process.space
	s.live -= sp.copied
	sp.copied = 0
	sp.exec()
	s.nextGen(sp)
}

// fork handles the birth of a thread, or of a process, which starts with a
// copy of its parent's address space. A FORK record that perf made from /proc
// (MiscForkExec) is followed by the mappings.
func (s *Session) fork(r *perfdata.Task) {
	parent := s.threads.byTID[r.TaskPTID]
	if parent != nil && parent.PID != r.TaskPPID {
		parent = nil
	}
	var p *process
	if r.TaskPID == r.TaskPPID {
		p = s.threads.process(r.TaskPID)
	} else {
		s.stats.Processes++
		p = &process{pid: r.TaskPID, space: &space{}}
		if from := s.threads.processes[r.TaskPPID]; from != nil && r.Misc&perfdata.MiscForkExec == 0 {
			p.space = from.space.fork()
		}
		s.nextGen(p.space)
		s.threads.processes[r.TaskPID] = p
	}
	th := s.newThread(r.TaskPID, r.TaskTID, p)
	if parent != nil && parent.named {
		th.Comm, th.named = parent.Comm, true
	}
	if r.Misc&perfdata.MiscForkExec == 0 && r.Time != 0 {
		th.sched.set(runnable, r.Time) // copy_process is followed by wake_up_new_task
	}
}

// exit remembers that the thread has gone and forgets those that went long ago.
func (s *Session) exit(r *perfdata.Task) {
	t := &s.threads
	th := t.byTID[r.TaskTID]
	if th == nil || th.PID != r.TaskPID || th.exited || th.TID == 0 {
		return
	}
	th.exited = true
	if len(t.exited) < keptExited {
		t.exited = append(t.exited, th)
		return
	}
	if old := t.exited[t.next]; old.exited && t.byTID[old.TID] == old {
		s.dropThread(old)
	}
	t.exited[t.next] = th
	t.next = (t.next + 1) % keptExited
}

// mmap handles MMAP and MMAP2.
func (s *Session) mmap(r *perfdata.Mmap) {
	switch r.Misc & perfdata.MiscCPUModeMask {
	case perfdata.MiscKernel:
		s.kernelMmap(r)
		return
	case perfdata.MiscGuestKernel, perfdata.MiscGuestUser, perfdata.MiscHypervisor:
		s.stats.ForeignMappings++
		return
	}
	if r.Misc&perfdata.MiscProcMapParseTimeout != 0 {
		s.stats.MissingMappings++
	}
	p := s.thread(r.MapPID, r.MapTID).process
	m := s.userMapping(r)
	if m.start >= m.end {
		return
	}
	s.unshare(p.space)
	p.space.insert(m)
	s.nextGen(p.space)
}

// unshare gives a space its own slice before it is changed. Copies are counted
// against what the recording itself mapped: real children exec or exit soon,
// but a hostile recording could make every fork copy a huge space.
func (s *Session) unshare(sp *space) {
	s.mapped++
	if !sp.shared {
		return
	}
	sp.shared = false
	if n := len(sp.maps); s.live+n > 1<<20+8*s.mapped {
		s.stats.SpacesCut++
		sp.maps = nil
		return
	}
	sp.maps = append(make([]mapping, 0, len(sp.maps)+4), sp.maps...)
	s.live += len(sp.maps) - sp.copied
	sp.copied = len(sp.maps)
}
