package perfdata

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// openDir opens the directory perf record --threads writes: "data" is a
// recording in file mode with header and everything perf synthesised,
// "data.0", "data.1"... hold the records of one ring buffer each, without any
// header (perf_data__open_dir, tools/perf/util/data.c).
func openDir(path string) (*Reader, error) {
	name := filepath.Join(path, "data")
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s is a directory, but not one perf record --threads wrote: %w", path, err)
	}
	r, err := openDirFile(f, name)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.files = append(r.files, f)
	r.meta.Path = path
	if err := r.addDataFiles(path); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func openDirFile(f *os.File, name string) (*Reader, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return newFileReader(f, st.Size(), name)
}

func (r *Reader) addDataFiles(path string) error {
	names, err := filepath.Glob(filepath.Join(path, "data.*"))
	if err != nil {
		return err
	}
	number := func(name string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(name), "data."))
		if err != nil {
			return -1
		}
		return n
	}
	sort.Slice(names, func(i, j int) bool { return number(names[i]) < number(names[j]) })
	for _, name := range names {
		if number(name) < 0 {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		r.files = append(r.files, f)
		st, err := f.Stat()
		if err != nil {
			return err
		}
		s := r.pump.open(name, io.NewSectionReader(f, 0, st.Size()), 0, st.Size())
		s.base = r.total
		r.total += st.Size()
	}
	return nil
}
