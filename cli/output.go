package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/term"
)

// writeOutput calls write with the place name stands for: "-" is standard
// output; a file appears under its name only when it is complete. It ends
// with an error when ctx is cancelled.
func (e *env) writeOutput(ctx context.Context, name string, write func(io.Writer) error) error {
	if name == "-" {
		return writeTo(ctx, e.Stdout, write)
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // keep the link, replace what it points to
	}
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return &fs.PathError{Op: "write", Path: name, Err: errors.New("is a directory")}
	}
	if err == nil && !info.Mode().IsRegular() {
		// A pipe or device cannot be replaced by a file.
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(writeTo(ctx, f, write), f.Close())
	}
	return replaceFile(ctx, name, write)
}

// replaceFile writes a temporary file beside name and renames it at success.
func replaceFile(ctx context.Context, name string, write func(io.Writer) error) error {
	f, err := createTemp(name)
	if err != nil {
		return err
	}
	if err := errors.Join(writeTo(ctx, f, write), f.Close()); err != nil {
		os.Remove(f.Name())
		return err
	}
	return os.Rename(f.Name(), name)
}

// createTemp makes a new file beside name, with the permissions name has or,
// unlike os.CreateTemp, those the umask gives a new file.
func createTemp(name string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		var cause *fs.PathError
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	mode := 0o666 &^ umask()
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	if err := f.Chmod(mode); err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

// patientWriter writes until its context is cancelled.
type patientWriter struct {
	ctx context.Context
	w   io.Writer
}

func (p *patientWriter) Write(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, errInterrupted
	}
	return p.w.Write(b)
}

var errInterrupted = errors.New("interrupted")

func writeTo(ctx context.Context, w io.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(&patientWriter{ctx, w}, 1<<16) // what writes with a buffer of this size uses this one
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

// outputName is where the result goes if -o does not say: standard output,
// except that binary data does not go to a terminal.
func (e *env) outputName(asked string, binary bool) string {
	switch {
	case asked != "":
		return asked
	case binary && term.IsTerminal(int(e.Stdout.Fd())):
		return "perfcorrect.pb.gz"
	}
	return "-"
}
