package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// buildIDPath is "xx/yyyy..." of a build ID, as both ~/.debug/.build-id and
// /usr/lib/debug/.build-id lay it out; "" if the ID is too short or no hex.
func buildIDPath(id string) string {
	if len(id) < 6 || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id[:2] + "/" + id[2:]
}

// cached is a file of perf's build-ID cache (perf-buildid-cache(1)):
// DIR/.build-id/xx/yyyy is a directory, or a link to one, that holds the
// object as "elf", "debug", "vdso" or "kallsyms"; before perf 4.9 it was the
// file itself.
func (s *Store) cached(id, what string) []string {
	p := buildIDPath(id)
	if p == "" || s.opt.BuildIDDir == "" {
		return nil
	}
	dir := filepath.Join(s.opt.BuildIDDir, ".build-id", p)
	return []string{filepath.Join(dir, what), dir}
}

// debugFiles are the places of a debug file known by its build ID.
func (s *Store) debugFiles(id string) []string {
	paths := s.cached(id, "debug")
	if p := buildIDPath(id); p != "" {
		for _, d := range s.opt.DebugDirs {
			paths = append(paths, filepath.Join(s.opt.Symfs, d, ".build-id", p+".debug"))
		}
	}
	return paths
}

// loadFile finds the file of an image by its recorded path, else by its build
// ID, and reads its symbols.
func (im *Image) loadFile() {
	s := im.store
	var paths []string
	if strings.HasPrefix(im.Path, "/") {
		if root := im.processRoot(); root != "" {
			paths = append(paths, filepath.Join(root, im.Path))
		}
		paths = append(paths, filepath.Join(s.opt.Symfs, im.Path))
	}
	if im.BuildID != "" { // it tells whether these guesses are the file
		if p, ok := strings.CutSuffix(im.Path, " (deleted)"); ok {
			paths = append(paths, filepath.Join(s.opt.Symfs, p))
		}
		if s.opt.Symfs != "" {
			paths = append(paths, filepath.Join(s.opt.Symfs, filepath.Base(im.Path)))
		}
		paths = append(paths, s.cached(im.BuildID, "elf")...)
	}
	im.file = im.openFirst(paths)
	if im.file == nil && im.BuildID != "" {
		if im.file = im.fetched(im.BuildID, "executable"); im.file != nil {
			im.dropProblems()
		}
	}
	if im.file == nil && im.BuildID != "" {
		// A debug file alone has names, though no code.
		im.debug = im.openQuietly(s.debugFiles(im.BuildID), im.BuildID)
		if im.debug == nil {
			im.debug = im.fetched(im.BuildID, "debuginfo")
		}
		if im.debug != nil {
			im.dropProblems()
		}
	} else if im.file != nil {
		if im.debug = im.separateDebug(); im.debug == nil && !im.file.complete() {
			im.debug = im.fetched(im.file.buildID, "debuginfo")
		}
	}
	im.readSymbols()
}

// processRoot is the root directory of a process that had the image mapped,
// if that is another than ours and can be entered, else "".
func (im *Image) processRoot() string {
	if im.process == 0 || !im.store.opt.SameHost || im.store.opt.Symfs != "" {
		return ""
	}
	root := filepath.Join(im.store.procDir, itoa(int(im.process)), "root")
	theirs, err := os.Stat(root + "/")
	if err != nil {
		return ""
	}
	ours, err := os.Stat("/")
	if err != nil || os.SameFile(theirs, ours) {
		return ""
	}
	return root
}

// openFirst opens the first of several files that is an ELF file with the
// recorded build ID, and says what was wrong with those before it only if
// there is none.
func (im *Image) openFirst(paths []string) *elfFile {
	var met []Problem
	for _, p := range paths {
		e, err := im.store.files.openELF(p)
		switch {
		case errors.Is(err, fs.ErrNotExist) || isDir(p):
			continue
		case err != nil:
			met = append(met, Problem{Image: im, Path: p, Kind: Damaged, What: err.Error()})
			if errors.Is(err, fs.ErrPermission) {
				met[len(met)-1].Kind = Missing
			}
			continue
		case im.BuildID != "" && !sameBuildID(e.buildID, im.BuildID):
			e.close()
			met = append(met, Problem{Image: im, Path: p, Kind: Mismatch,
				What: fmt.Sprintf("has build ID %s, recorded was %s", orNone(e.buildID), im.BuildID)})
			continue
		}
		return e
	}
	if met == nil && len(paths) > 0 {
		met = []Problem{{Image: im, Path: paths[0], Kind: Missing, What: "no such file"}}
	}
	im.problems = append(im.problems, met...)
	return nil
}

func (im *Image) dropProblems() { im.problems = nil }

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// sameBuildID compares a file's build ID with a recorded one. perf recorded
// 20 bytes always before Linux 5.10 and pads shorter IDs with zeros.
func sameBuildID(file, recorded string) bool {
	if file == "" {
		return false
	}
	return file == recorded ||
		strings.HasPrefix(recorded, file) && strings.Trim(recorded[len(file):], "0") == "" ||
		strings.HasPrefix(file, recorded) && len(recorded) == 40
}

// openQuietly opens the first of several debug files that fits; having none
// is no problem. id "" means any.
func (im *Image) openQuietly(paths []string, id string) *elfFile {
	for _, p := range paths {
		if isDir(p) {
			continue
		}
		e, err := im.store.files.openELF(p)
		if err != nil {
			continue
		}
		if id == "" || sameBuildID(e.buildID, id) {
			return e
		}
		e.close()
	}
	return nil
}

// separateDebug finds the file that has the symbols and DWARF a distribution
// stripped from im.file: by build ID, else by .gnu_debuglink (a file name and
// the CRC-32 of the file, searched as GDB does: "Debugging Information in
// Separate Files": beside the file, in .debug beside it, and under the debug
// directories).
func (im *Image) separateDebug() *elfFile {
	e, s := im.file, im.store
	if e.complete() {
		return nil
	}
	if d := im.openQuietly(s.debugFiles(e.buildID), e.buildID); d != nil {
		return d
	}
	link, err := e.section(".gnu_debuglink")
	if err != nil {
		return nil
	}
	name := cString(link)
	at := (len(name) + 1 + 3) &^ 3
	if name == "" || name != filepath.Base(name) || len(link) < at+4 {
		return nil
	}
	crc := e.order().Uint32(link[at:])
	dir := filepath.Dir(e.path)
	paths := []string{filepath.Join(dir, name), filepath.Join(dir, ".debug", name)}
	for _, d := range s.opt.DebugDirs {
		paths = append(paths, filepath.Join(s.opt.Symfs, d, filepath.Dir(im.Path), name))
	}
	for _, p := range paths {
		if p == e.path || !hasCRC(p, crc) {
			continue
		}
		if d := im.openQuietly([]string{p}, ""); d != nil {
			return d
		}
	}
	return nil
}

// complete says whether a file has symbols and DWARF of its own.
func (e *elfFile) complete() bool {
	return e.f.Section(".debug_info") != nil && e.f.SectionByType(symtabSection) != nil
}

// hasCRC says whether a file has the CRC-32 (IEEE) a debug link asks for.
func hasCRC(path string, want uint32) bool {
	f, _, err := openRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := crc32.NewIEEE()
	if _, err := io.Copy(h, f); err != nil {
		return false
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], want)
	return string(h.Sum(nil)) == string(b[:])
}

// readSymbols fills im.symbols from the debug file, the file itself, its PLT.
func (im *Image) readSymbols() {
	code := im.file
	if code == nil {
		code = im.debug
	}
	if code == nil {
		return
	}
	var b symtabBuilder
	for _, e := range []*elfFile{im.debug, im.file} {
		if e == nil {
			continue
		}
		n := len(b.all)
		im.note(e, e.addSymbols(&b, symtabSection, code.offset))
		if e == im.file || len(b.all) == n {
			im.note(e, e.addSymbols(&b, dynsymSection, code.offset))
		}
	}
	if im.file != nil {
		if im.file.f.SectionByType(symtabSection) == nil && (im.debug == nil || im.debug.f.SectionByType(symtabSection) == nil) {
			im.note(im.file, im.file.addMiniDebug(&b, code.offset))
			im.note(im.file, im.file.addGoSymbols(&b, code.offset))
		}
		im.note(im.file, im.file.addPLT(&b))
	}
	im.symbols = b.finish()
}

// note keeps an error met while reading a file; a section that is not there
// is none.
func (im *Image) note(e *elfFile, err error) {
	if err != nil && !errors.Is(err, errNoSection) {
		im.problems = append(im.problems, Problem{Image: im, Path: e.path, Kind: Damaged, What: err.Error()})
	}
}
