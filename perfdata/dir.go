package perfdata

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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

// addDataFiles adds the files "data.N" as streams, in the order of N.
func (r *Reader) addDataFiles(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var numbers []int
	for _, e := range list {
		if n, ok := strings.CutPrefix(e.Name(), "data."); ok {
			if i, err := strconv.Atoi(n); err == nil && i >= 0 && strconv.Itoa(i) == n {
				numbers = append(numbers, i)
			}
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if err := r.addDataFile(filepath.Join(dir, fmt.Sprintf("data.%d", n))); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) addDataFile(name string) error {
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
	return nil
}
