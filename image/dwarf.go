package image

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/perfcorrect/perfcorrect/image/debuginfo"
)

// debugInfo is the DWARF of one file.
type debugInfo struct {
	from *elfFile
	data *debuginfo.File
}

// dwarfOf opens the debug information of an image, nil if it has none. It is
// not kept: it is large, and asked for once, for all locations.
func (im *Image) dwarfOf() *debugInfo {
	for _, e := range []*elfFile{im.debug, im.file} {
		if e == nil || e.f.Section(".debug_info") == nil && e.f.Section(".zdebug_info") == nil {
			continue
		}
		var d *debuginfo.File
		err := contain(e.path, func() (err error) {
			d, err = debuginfo.Open(im.debugSource(e))
			return err
		})
		if im.note(e, err); err == nil {
			return &debugInfo{e, d}
		}
	}
	return nil
}

// describe answers queries.
func (d *debugInfo) describe(qs []debuginfo.Query) error {
	return contain(d.from.path, func() error {
		if err := d.data.Describe(qs); err != nil {
			return fmt.Errorf("%s: %w", d.from.path, err)
		}
		return nil
	})
}

// debugSource is where package debuginfo finds the sections of a file and the
// files it refers to.
func (im *Image) debugSource(e *elfFile) debuginfo.Source {
	return debuginfo.Source{
		Path:      e.path,
		BigEndian: e.f.ByteOrder == binary.BigEndian,
		Lowest:    e.lowestCode(),
		Section:   e.debugSection,
		Split:     func(dir, name string) *debuginfo.Source { return im.splitDebug(e, dir, name) },
		Alternate: func() *debuginfo.Source { return im.alternateDebug(e) },
	}
}

func (e *elfFile) lowestCode() uint64 {
	lowest := ^uint64(0)
	for _, s := range e.segments {
		if s.exec {
			lowest = min(lowest, s.vaddr)
		}
	}
	if lowest == ^uint64(0) {
		return 0
	}
	return lowest
}

// smallSection is read into memory at once.
const smallSection = 4 << 20

// debugSection returns a debug section: in memory if it is small or has to be
// decompressed, else to be read from the file.
func (e *elfFile) debugSection(name string) (debuginfo.Section, error) {
	s := e.f.Section(name)
	if s == nil { // as GNU as compressed before ELF had SHF_COMPRESSED
		b, err := e.section(".z" + strings.TrimPrefix(name, "."))
		if errors.Is(err, errNoSection) {
			err = nil
		}
		return debuginfo.Section{Data: b}, err
	}
	if s.Type == elf.SHT_NOBITS {
		return debuginfo.Section{}, nil
	}
	if s.Flags&elf.SHF_COMPRESSED != 0 || s.Size <= smallSection {
		b, err := e.data(s)
		return debuginfo.Section{Data: b}, err
	}
	if s.Offset > uint64(e.size) || s.FileSize > uint64(e.size)-s.Offset {
		return debuginfo.Section{}, fmt.Errorf("%s: section %s at %#x, %d bytes, ends outside the file of %d", e.path, s.Name, s.Offset, s.FileSize, e.size)
	}
	return debuginfo.Section{R: io.NewSectionReader(e.r, int64(s.Offset), int64(s.FileSize)), Size: s.FileSize}, nil
}

// splitDebug finds the file of split units called name, compiled in dir, or
// with name "" the package of all, as GDB does: the package beside the file,
// the split file where it was written, or beside the file.
func (im *Image) splitDebug(e *elfFile, dir, name string) *debuginfo.Source {
	var paths []string
	if name == "" {
		paths = append(paths, e.path+".dwp", strings.TrimSuffix(e.path, ".debug")+".dwp")
		if im.file != nil {
			paths = append(paths, im.file.path+".dwp")
		}
	} else {
		p := name
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, name)
		}
		if filepath.IsAbs(p) {
			paths = append(paths, filepath.Join(im.store.opt.Symfs, p))
		}
		paths = append(paths, filepath.Join(filepath.Dir(e.path), filepath.Base(name)))
	}
	for _, p := range paths {
		if st, err := os.Stat(p); err != nil || st.IsDir() {
			continue
		}
		if d, err := im.store.files.openELF(p); err == nil {
			return &debuginfo.Source{Path: d.path, Section: d.debugSection}
		}
	}
	return nil
}

// alternateDebug finds the file named by .gnu_debugaltlink: a path, relative
// to the file's own, and a build ID.
func (im *Image) alternateDebug(e *elfFile) *debuginfo.Source {
	link, err := e.section(".gnu_debugaltlink")
	if err != nil {
		return nil
	}
	name := cString(link)
	if name == "" || len(link) <= len(name)+1 {
		return nil
	}
	id := fmt.Sprintf("%x", link[len(name)+1:])
	var paths []string
	if filepath.IsAbs(name) {
		paths = append(paths, filepath.Join(im.store.opt.Symfs, name))
	} else {
		paths = append(paths, filepath.Join(filepath.Dir(e.path), name))
	}
	for _, d := range im.store.opt.DebugDirs {
		paths = append(paths, filepath.Join(im.store.opt.Symfs, d, ".dwz", filepath.Base(name)))
	}
	d := im.openQuietly(append(paths, im.store.debugFiles(id)...), id)
	if d == nil {
		d = im.fetched(id, "debuginfo")
	}
	if d == nil {
		im.problems = append(im.problems, Problem{Image: im, Path: name, Kind: Missing,
			What: "no such file; some names of inlined functions are in it"})
		return nil
	}
	return &debuginfo.Source{Path: d.path, BigEndian: d.f.ByteOrder == binary.BigEndian, Section: d.debugSection}
}
