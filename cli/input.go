package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// inputFlags are the flags of commands that read recordings.
type inputFlags struct {
	files []string
	image image.Options
	forms *string
	store *image.Store
}

func (f *inputFlags) declare(fs *flagSet) {
	fs.listVar(&f.files, "input", "i", "recording to `FILE`, as perf has it; - is standard input", false)
	fs.stringVar(&f.image.Symfs, "symfs", "", "", "look for the recorded program files under `DIR`")
	fs.stringVar(&f.image.Vmlinux, "vmlinux", "k", "", "kernel `FILE` with symbols")
	fs.stringVar(&f.image.Kallsyms, "kallsyms", "", "", "kernel symbols in `FILE`, as in /proc/kallsyms")
	fs.boolVar(&f.image.NoDemangle, "no-demangle", "", "leave C++ and Rust names as they are")
}

// declareNames declares the flags of commands that show functions.
func (f *inputFlags) declareNames(fs *flagSet) {
	f.forms = choice(fs, "names", "how much of C++ and Rust names to show", string(image.PerfNames), string(image.FullNames), string(image.ShortNames))
	fs.boolVar(&f.image.MergeClones, "merge-clones", "", "name f.cold, f.part.0, f.constprop.0 and the like f")
}

// names are the recordings to read: arguments and -i together, or perf.data.
func (f *inputFlags) names(args []string) ([]string, error) {
	names := append(append([]string(nil), f.files...), args...)
	if len(names) == 0 {
		names = []string{"perf.data"}
	}
	stdin := 0
	for _, n := range names {
		if n == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return nil, usagef("standard input can be read only once")
	}
	return names, nil
}

// input is one recording being read.
type input struct {
	name    string // as given
	reader  *perfdata.Reader
	session *session.Session
}

// open opens a recording; all of one command share the image store.
func (f *inputFlags) open(e *env, name string) (*input, error) {
	if f.store == nil {
		if f.forms != nil {
			f.image.Names = image.NameForm(*f.forms)
		}
		f.store = image.NewStore(f.image)
	}
	in := &input{name: name}
	var err error
	if name == "-" {
		in.name = "standard input"
		if term.IsTerminal(int(e.Stdin.Fd())) {
			return nil, withHint(errors.New("standard input is a terminal, not a recording"), "perf record -o - -g PROGRAM | perfcorrect convert -")
		}
		in.reader, err = perfdata.NewReader(e.Stdin, in.name)
	} else {
		in.reader, err = perfdata.Open(name)
	}
	if err != nil {
		return nil, openHint(name, err)
	}
	f.store.SetSameHost(recordedHere(name, in.reader.Meta()))
	in.session = session.New(in.reader, f.store)
	return in, nil
}

func openHint(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return withHint(err, "perf record -g PROGRAM makes perf.data")
	case errors.Is(err, fs.ErrPermission):
		return withHint(err, "the recording belongs to the user who recorded it: sudo chown $USER %s", name)
	}
	return err
}

// recordedHere reports whether a recording was made on this host since it
// booted, so that the running kernel's symbols are those of the recording. What
// comes on standard input is taken for fresh.
func recordedHere(name string, meta *perfdata.Meta) bool {
	var uts unix.Utsname
	var sys unix.Sysinfo_t
	host, err := os.Hostname()
	if err != nil || unix.Uname(&uts) != nil || unix.Sysinfo(&sys) != nil {
		return false
	}
	if meta.Hostname != host || meta.OSRelease != unix.ByteSliceToString(uts.Release[:]) {
		return false
	}
	if name == "-" {
		return true
	}
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	booted := time.Now().Add(-time.Duration(sys.Uptime) * time.Second)
	return info.ModTime().After(booted)
}

func (in *input) Close() error { return in.reader.Close() }

// samples iterates over the session's samples, shows progress and ends with
// an error when ctx is cancelled.
func (in *input) samples(ctx context.Context, e *env) iter.Seq2[*session.Sample, error] {
	const every = 4096 // samples between two looks at the clock
	return func(yield func(*session.Sample, error) bool) {
		bar := e.startBar()
		defer e.stopBar()
		n := 0
		for s, err := range in.session.Samples() {
			if n++; n%every == 0 {
				done, total := in.reader.Progress()
				bar.update("reading", done, total)
				if ctx.Err() != nil {
					yield(nil, errInterrupted)
					return
				}
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading %s: %w", in.name, err))
				return
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

// filter keeps the samples of some processes, threads or commands; empty
// lists keep all.
type filter struct {
	pids, tids []int
	comms      []string

	seen    map[string]bool // commands, for the hint if nothing is left
	dropped int64
}

func (f *filter) declare(fs *flagSet) {
	fs.intListVar(&f.pids, "pid", "", "only samples of processes `N,...`")
	fs.intListVar(&f.tids, "tid", "", "only samples of threads `N,...`")
	fs.listVar(&f.comms, "comm", "", "only samples of threads named `NAME,...`", true)
}

func (f *filter) keep(s *session.Sample) bool {
	if len(f.pids)+len(f.tids)+len(f.comms) == 0 {
		return true
	}
	t := s.Thread
	if has(f.pids, int(t.PID)) && has(f.tids, int(t.TID)) && has(f.comms, t.Comm) {
		return true
	}
	f.dropped++
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[t.Comm] = true
	return false
}

// has reports whether list contains v; an empty list contains everything.
func has[T comparable](list []T, v T) bool {
	return len(list) == 0 || slices.Contains(list, v)
}

// hint names what the filter could have kept.
func (f *filter) hint() string {
	return "--pid, --tid and --comm leave none; the recording has " + atMost(slices.Sorted(maps.Keys(f.seen)), 10)
}
