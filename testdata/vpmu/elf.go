package vpmu

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// execMaps knows which parts of files are code: the emulator maps guest text
// without PROT_EXEC, so program headers have to say.
type execMaps struct{ files map[string]*execFile }

type execFile struct {
	segments [][2]uint64 // file offsets, [start, end)
	buildID  []byte
}

func (x *execMaps) file(path string) *execFile {
	if f := x.files[path]; f != nil {
		return f
	}
	if x.files == nil {
		x.files = map[string]*execFile{}
	}
	f := new(execFile)
	x.files[path] = f
	e, err := elf.Open(path)
	if err != nil {
		return f // no ELF: nothing executable that we know of
	}
	defer e.Close()
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			f.segments = append(f.segments, [2]uint64{p.Off, p.Off + p.Filesz})
		}
	}
	if s := e.Section(".note.gnu.build-id"); s != nil {
		if b, err := s.Data(); err == nil {
			f.buildID = noteDesc(b)
		}
	}
	return f
}

// noteDesc returns the descriptor of the first ELF note in b, if it is GNU's.
func noteDesc(b []byte) []byte {
	if len(b) < 16 || !bytes.Equal(b[12:16], []byte("GNU\x00")) {
		return nil
	}
	n := binary.LittleEndian.Uint32(b[4:])
	if uint64(n) > uint64(len(b)-16) {
		return nil
	}
	return b[16 : 16+n]
}

// executable reports whether [off, off+n) of the file holds code.
func (x *execMaps) executable(path string, off, n uint64) bool {
	for _, s := range x.file(path).segments {
		if off < s[1] && s[0] < off+n {
			return true
		}
	}
	return false
}

func (x *execMaps) buildIDs(paths []string) (ids []perfdata.BuildID) {
	for _, p := range paths {
		if strings.HasPrefix(p, "//") {
			continue
		}
		if id := x.file(p).buildID; id != nil {
			ids = append(ids, perfdata.BuildID{PID: -1, Misc: perfdata.MiscUser, ID: id, Filename: p})
		}
	}
	return ids
}
