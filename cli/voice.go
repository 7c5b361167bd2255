package cli

import (
	"errors"
	"fmt"
	"io"
)

// voice speaks on standard error, by the rules in the package comment.
type voice struct {
	w     io.Writer
	quiet bool
	bar   *bar // shown now, wiped before anything is said
}

func newVoice(w io.Writer) *voice { return &voice{w: w} }

func (v *voice) line(format string, args ...any) {
	if v.bar != nil {
		v.bar.wipe()
	}
	fmt.Fprintf(v.w, "perfcorrect: "+format+"\n", args...)
}

// say tells what was done.
func (v *voice) say(format string, args ...any) {
	if !v.quiet {
		v.line(format, args...)
	}
}

// warn tells what may be wrong with the result.
func (v *voice) warn(format string, args ...any) {
	if !v.quiet {
		v.line("warning: "+format, args...)
	}
}

// fail tells why there is no result.
func (v *voice) fail(err error) {
	v.line("%v", err)
	var u *usageError
	if errors.As(err, &u) {
		v.line("hint: see perfcorrect %s", u.help())
	}
	var h *hintError
	if errors.As(err, &h) {
		v.line("hint: %s", h.hint)
	}
}

// usageError is a command line that makes no sense: exit status 2.
type usageError struct {
	err     error
	command string
}

func usagef(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

func (e *usageError) Error() string {
	if e.command != "" {
		return e.command + ": " + e.err.Error()
	}
	return e.err.Error()
}

func (e *usageError) Unwrap() error { return e.err }

func (e *usageError) help() string {
	if e.command != "" {
		return e.command + " --help"
	}
	return "--help"
}

// hintError is an error one can do something about.
type hintError struct {
	err  error
	hint string
}

func withHint(err error, format string, args ...any) error {
	return &hintError{err, fmt.Sprintf(format, args...)}
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }
