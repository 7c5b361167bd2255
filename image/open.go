package image

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openRegular opens a regular file for reading. Paths come from recordings:
// one may name a FIFO, which must not make us wait, or a device.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	return f, st, err
}

// maxOpen bounds the files a Store keeps open; a recording of a large host
// names thousands.
const maxOpen = 64

// openFiles are the files a Store has open, oldest first.
type openFiles struct{ open []*lazyFile }

// lazyFile is a file that is open when it is read and may be closed in
// between.
type lazyFile struct {
	set  *openFiles
	path string
	f    *os.File
}

// ReadAt opens the file if it is not open, and may close the one that was
// opened longest ago.
func (l *lazyFile) ReadAt(b []byte, off int64) (int, error) {
	if l.f == nil {
		f, _, err := openRegular(l.path)
		if err != nil {
			return 0, err
		}
		l.f = f
		if l.set.open = append(l.set.open, l); len(l.set.open) > maxOpen {
			l.set.open[0].Close()
		}
	}
	return l.f.ReadAt(b, off)
}

// Close closes the file until it is read again.
func (l *lazyFile) Close() error {
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	for i, o := range l.set.open {
		if o == l {
			l.set.open = append(l.set.open[:i], l.set.open[i+1:]...)
			break
		}
	}
	return f.Close()
}

// Close closes every file the store has open. It stays usable: a file is
// opened again when it is read.
func (s *Store) Close() error {
	var first error
	for len(s.files.open) > 0 {
		if err := s.files.open[0].Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
