// Package cli is the command line: one file per command, and what the
// commands share (speech, progress, inputs, output files).
//
// Rules of speech:
//
//   - Results go to standard output or the file named with -o; everything
//     else goes to standard error, a line at a time, as "perfcorrect: ...",
//     without capital or full stop.
//   - A warning says "warning:" and what it means for the result. It never
//     changes the exit status.
//   - An error says what failed, where and why; a hint that follows says what
//     to do about it.
//   - --quiet leaves only errors.
//
// Exit status is 0 for success, 1 for failure and 2 for a command line that
// makes no sense.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	ucli "github.com/urfave/cli/v2"
)

// Exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// IO is the world around a command.
type IO struct {
	Stdin  *os.File
	Stdout *os.File
	Stderr io.Writer
}

// System is the process's own IO.
func System() IO { return IO{os.Stdin, os.Stdout, os.Stderr} }

// command is one sub-command. flags declares its flags in fs and returns the
// function that runs it once they are parsed.
type command struct {
	name    string
	args    string // for the usage line
	summary string // one line
	about   string // a paragraph or two of help
	flags   func(fs *flagSet) runFunc
}

type runFunc func(ctx context.Context, env *env, args []string) error

// commands in the order help shows them.
func commands() []*command {
	return []*command{
		recordCommand(),
		convertCommand(),
		infoCommand(),
		compareCommand(),
		completionCommand(),
	}
}

// env is what a running command has: its IO and its voice.
type env struct {
	IO
	*voice
}

// Main runs the command line args (without the program name) and returns the
// exit status.
func Main(args []string, io IO) int {
	// A second interrupt kills as usual: the first gave the command the
	// chance to remove its temporary file.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	e := &env{IO: io, voice: newVoice(io.Stderr)}
	err := dispatch(ctx, e, args)
	var program *statusError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &program):
		return program.status
	case errors.Is(err, syscall.EPIPE):
		return exitFailure // the reader of our output went away: nothing to tell
	}
	e.fail(err)
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}

// dispatch finds the command and parses its flags.
func dispatch(ctx context.Context, e *env, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(e.Stderr, helpText())
		return usagef("no command given")
	}
	switch args[0] {
	case "help", "-h", "--help":
		return printHelp(e, args[1:])
	case "version", "-v", "--version":
		fmt.Fprintln(e.Stdout, "perfcorrect", version())
		return nil
	}
	c := findCommand(args[0])
	if c == nil {
		if strings.HasPrefix(args[0], "-") {
			return usagef("flag %s stands before the command", args[0])
		}
		return usagef("unknown command %q", args[0])
	}
	return c.run(ctx, e, args[1:])
}

// run parses the command's flags and runs it.
func (c *command) run(ctx context.Context, e *env, args []string) error {
	fs, run := c.flagSet()
	words, err := fs.normalize(args)
	if errors.Is(err, errHelp) {
		fmt.Fprint(e.Stdout, c.help())
		return nil
	}
	if err != nil {
		return &usageError{err: err, command: c.name}
	}
	app := &ucli.App{
		Name: "perfcorrect", HideHelp: true, HideVersion: true,
		Writer: io.Discard, ErrWriter: io.Discard, // what there is to say, voice says
		ExitErrHandler: func(*ucli.Context, error) {},
		Commands: []*ucli.Command{{
			Name: c.name, Usage: c.summary, ArgsUsage: c.args, Description: c.about, HideHelp: true,
			Flags:        fs.urfave(),
			OnUsageError: func(_ *ucli.Context, err error, _ bool) error { return &usageError{err: err} },
			Action:       func(x *ucli.Context) error { return run(ctx, e, x.Args().Slice()) },
		}},
	}
	e.quiet = fs.quiet(words)
	err = app.RunContext(ctx, append([]string{"perfcorrect", c.name}, words...))
	var usage *usageError
	if errors.As(err, &usage) {
		usage.command = c.name
	}
	return err
}

func findCommand(name string) *command {
	for _, c := range commands() {
		if c.name == name {
			return c
		}
	}
	return nil
}

// flagSet declares the command's flags. Flags may stand before or after the
// file names, as perf users type them.
func (c *command) flagSet() (*flagSet, runFunc) {
	fs := &flagSet{}
	run := c.flags(fs)
	fs.boolVar(new(bool), "quiet", "q", "say nothing but errors")
	return fs, run
}

// version is the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel " + s.Value
		}
	}
	return "devel"
}
