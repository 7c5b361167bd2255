package record

import (
	"errors"
	"fmt"
	"os"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// Output is where a recording goes.
type Output struct {
	Name string // "-" is standard output, as a pipe
	Zstd int    // level, 0 writes plain records

	file *os.File
	pipe bool
}

// open creates the file, for its owner only: a recording shows what memory
// held. One that exists is kept as NAME.old, as perf does.
func (o *Output) open() error {
	if o.Name == "-" {
		o.file, o.pipe = os.Stdout, true
		return nil
	}
	info, err := os.Stat(o.Name)
	switch {
	case err == nil && info.IsDir():
		return &HintError{fmt.Errorf("%s is a directory", o.Name), "move it away, or name a file with -o"}
	case err == nil && !info.Mode().IsRegular(): // a pipe or device
		o.pipe = true
		o.file, err = os.OpenFile(o.Name, os.O_WRONLY, 0)
		return err
	case err == nil && info.Size() > 0:
		if err := os.Rename(o.Name, o.Name+".old"); err != nil {
			return err
		}
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	o.file, err = os.OpenFile(o.Name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = o.file.Chmod(0o600) // of an empty file that was there
	}
	return err
}

func (o *Output) writer(meta *perfdata.Meta) (*perfdata.Writer, error) {
	opts := perfdata.WriteOptions{Zstd: o.Zstd}
	if o.pipe {
		return perfdata.NewPipeWriter(o.file, meta, opts)
	}
	return perfdata.NewFileWriter(o.file, meta, opts)
}

func (o *Output) close() error {
	if o.file == nil || o.file == os.Stdout {
		return nil
	}
	return o.file.Close()
}

// remove deletes a file nothing was recorded in.
func (o *Output) remove() {
	if o.file != nil && !o.pipe {
		os.Remove(o.Name)
	}
}
