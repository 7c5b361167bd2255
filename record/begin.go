package record

import (
	"os"
)

// startProgram lets the program run; exited is closed when it has ended.
func (r *recorder) startProgram(exited chan struct{}) error {
	x := r.existingWriter()
	pid := r.child.pid()
	if err := x.thread(pid, pid, os.Getpid()); err != nil {
		r.writeErr = err
	}
	if r.Plan.PerCPU {
		// enable_on_exec starts only events of the thread that execs.
		if err := r.enable(); err != nil {
			return err
		}
		if r.Target.Wide() {
			if err := r.existingProcesses(); err != nil {
				r.writeErr = err
			}
		}
	}
	if err := r.child.run(); err != nil {
		return err
	}
	go func() {
		r.child.cmd.Wait() // its error is in ProcessState
		r.state = r.child.cmd.ProcessState
		close(exited)
		r.poll.wake()
	}()
	return nil
}

func (r *recorder) existingWriter() *existing {
	return &existing{proc: procFS(), emit: r.writer.Write, seen: r.ids.mapped}
}

// existingProcesses describes what already ran. The events count by now, so
// that nothing falls between; the rings are emptied meanwhile, but no round is
// finished, and so readers put it all behind the descriptions.
func (r *recorder) existingProcesses() error {
	x := r.existingWriter()
	if r.Target.Wide() {
		return x.all(func() error { r.drain(); return r.writeErr })
	}
	pids := append([]int(nil), r.Target.PIDs...)
	for _, tid := range r.Target.TIDs {
		if pid := processOf(tid); pid > 0 {
			pids = append(pids, pid)
		}
	}
	for _, pid := range pids {
		if err := x.process(pid); err != nil {
			return err
		}
	}
	return nil
}
