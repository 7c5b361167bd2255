package record

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// signals decides what becomes of signals sent to the recorder.
//
// Recording a command, it passes them on and goes on until the command ends.
// What the keyboard sends (SIGINT, SIGQUIT) the terminal has already sent to
// the command as well, if they share the terminal. A second SIGINT ends the
// recording and sends the command SIGTERM; a third kills it. Without a command, SIGINT and SIGTERM
// end the recording.
type signals struct {
	c      chan os.Signal
	done   chan struct{}
	r      *recorder
	ending atomic.Bool
}

func newSignals(r *recorder) *signals {
	s := &signals{c: make(chan os.Signal, 16), done: make(chan struct{}), r: r}
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if r.child != nil {
		list = append(list, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	}
	signal.Notify(s.c, list...)
	go s.handle()
	return s
}

func (s *signals) handle() {
	defer close(s.done)
	interrupts := 0
	for sig := range s.c {
		if s.r.child == nil {
			s.end()
			continue
		}
		if sig == os.Interrupt {
			if interrupts++; interrupts > 2 {
				s.r.child.cmd.Process.Kill()
				continue
			} else if interrupts > 1 {
				s.terminate()
				s.end()
				continue
			}
		}
		if (sig == os.Interrupt || sig == syscall.SIGQUIT) && inForeground() {
			continue
		}
		s.r.child.cmd.Process.Signal(sig)
	}
}

func (s *signals) end() {
	s.ending.Store(true)
	s.r.poll.wake()
}

func (s *signals) ended() bool { return s.ending.Load() }

// terminate asks the command to end.
func (s *signals) terminate() { s.r.child.cmd.Process.Signal(syscall.SIGTERM) }

func (s *signals) stop() {
	signal.Stop(s.c)
	close(s.c)
	<-s.done
}

// inForeground reports whether the terminal's keys reach this process group.
func inForeground() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer f.Close()
	pgrp, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && pgrp == unix.Getpgrp()
}
