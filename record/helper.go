package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// helperName is argv[0] of the program while it waits to become the recorded
// one.
const helperName = "perfcorrect-exec"

// Descriptors of the helper, in the order of exec.Cmd.ExtraFiles.
const (
	helperGo     = 3 // a byte says that the events are open; end of file: give up
	helperStatus = 4 // a byte says that the helper waits; then errno of a failed exec; closed by one that works
)

func init() {
	// The main goroutine of a helper must stay on the first thread: events
	// belong to that, and exec by another thread ends it.
	if IsHelper() {
		runtime.LockOSThread()
	}
}

// IsHelper reports whether this process was started to become the recorded
// program.
func IsHelper() bool { return len(os.Args) > 2 && os.Args[0] == helperName }

// Helper waits until the recorder has opened its events, and becomes the
// recorded program: os.Args[1] is its path, the rest its arguments. Go cannot
// stop between fork and exec, so the recorder starts itself once more as this.
// It returns only if that failed; the recorder has been told why.
func Helper() int {
	unix.CloseOnExec(helperGo)
	unix.CloseOnExec(helperStatus)
	// Only now may events be opened. While Go's runtime starts, the first thread
	// makes others; they would inherit its events and, as the kernel swaps the
	// contexts of threads with equal events (perf_event_context_sched_out), take
	// the first instances, which can be changed, with them when exec ends them.
	var b [1]byte
	unix.Write(helperStatus, b[:])
	if !helperWait(b[:]) {
		return 1
	}
	path, args := os.Args[1], os.Args[2:]
	err := syscall.Exec(path, args, os.Environ())
	if err == syscall.ENOEXEC { // a script without #!, as execvp(3) does
		err = syscall.Exec("/bin/sh", append([]string{"sh", path}, args[1:]...), os.Environ())
	}
	var errno syscall.Errno
	errors.As(err, &errno)
	unix.Write(helperStatus, binary.LittleEndian.AppendUint32(nil, uint32(errno)))
	return 127
}

// lookPath finds a program as a shell does.
func lookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil || errors.Is(err, exec.ErrDot) {
		return path, nil
	}
	var e *exec.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	if errors.Is(err, exec.ErrNotFound) && !strings.Contains(program, "/") {
		err = errors.New("no such program in $PATH")
	}
	return "", &ExecError{program, err}
}

// helperWait reads the byte that says go. It does not tell Go's scheduler that
// the thread blocks, which would make it start others.
func helperWait(b []byte) bool {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, helperGo, uintptr(unsafe.Pointer(&b[0])), 1)
		if errno != unix.EINTR {
			return errno == 0 && n == 1
		}
	}
}

// child is the recorded program, or the helper that will become it.
type child struct {
	cmd    *exec.Cmd
	goPipe *os.File
	status *os.File
	path   string
}

// ExecError is a program that could not be started.
type ExecError struct {
	Program string
	Err     error
}

func (e *ExecError) Error() string { return fmt.Sprintf("cannot run %s: %v", e.Program, e.Err) }
func (e *ExecError) Unwrap() error { return e.Err }

// startChild starts the helper. It has to happen before the recorder changes
// its own limits, which the program would inherit.
//
// stdout is the program's: where the recording goes to standard output, that
// of the program goes elsewhere.
func startChild(command []string, stdout *os.File) (*child, error) {
	path, err := lookPath(command[0])
	if err != nil {
		return nil, err
	}
	goRead, goWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		goRead.Close()
		goWrite.Close()
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: append([]string{helperName, path}, command...),
		Stdin: os.Stdin, Stdout: stdout, Stderr: os.Stderr,
		ExtraFiles: []*os.File{goRead, statusWrite},
	}
	err = cmd.Start()
	goRead.Close()
	statusWrite.Close()
	c := &child{cmd: cmd, goPipe: goWrite, status: statusRead, path: path}
	if err != nil {
		c.closePipes()
		return nil, &ExecError{command[0], err}
	}
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// ready waits until events may be opened on the helper.
func (c *child) ready() error {
	var b [1]byte
	if n, err := c.status.Read(b[:]); n != 1 {
		return &ExecError{c.path, fmt.Errorf("its process ended early: %w", err)}
	}
	return nil
}

// run lets the helper become the program. An error is why it could not.
func (c *child) run() error {
	defer c.closePipes()
	if _, err := c.goPipe.Write([]byte{1}); err != nil {
		return &ExecError{c.path, fmt.Errorf("its process has gone: %w", err)}
	}
	var b [4]byte
	n, _ := c.status.Read(b[:])
	if n == 0 {
		return nil
	}
	return &ExecError{c.path, syscall.Errno(binary.LittleEndian.Uint32(b[:]))}
}

// abandon ends a helper that is not to become anything, and waits for it.
func (c *child) abandon() {
	c.closePipes() // end of file tells it
	c.cmd.Wait()
}

func (c *child) closePipes() {
	c.goPipe.Close()
	c.status.Close()
}

// exitStatus is what a shell would give: the program's status, or 128 and
// the number of the signal that ended it.
func exitStatus(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
