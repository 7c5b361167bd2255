package cli

import (
	"io/fs"
	"syscall"
)

// umask reads the process's file mode creation mask, which can only be read
// by setting it.
func umask() fs.FileMode {
	m := syscall.Umask(0)
	syscall.Umask(m)
	return fs.FileMode(m)
}
