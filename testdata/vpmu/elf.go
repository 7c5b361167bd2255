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

const (
	protRead = 1
	protExec = 4
	protTold = 0x100 // by the guest's own system call, else the emulator's doing
)

// split gives a mapping the protection it would have without the emulator:
// that of the program's segments, where the emulator made it.
func (x *execMaps) split(m mapEvent) []mapEvent {
	if m.prot&protTold != 0 {
		m.prot &^= protTold
		return []mapEvent{m}
	}
	var parts []mapEvent
	cut := func(to uint64, prot uint32) { // of the front, up to file offset to
		if to <= m.pgoff || m.len == 0 {
			return
		}
		p := m
		p.len = min(to-m.pgoff, m.len)
		p.prot = prot
		parts = append(parts, p)
		m.addr, m.pgoff, m.len = m.addr+p.len, m.pgoff+p.len, m.len-p.len
	}
	for _, s := range x.file(m.path).segments {
		cut(s[0]&^0xfff, protRead)
		cut((s[1]+0xfff)&^0xfff, protRead|protExec)
	}
	cut(^uint64(0), protRead)
	return parts
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
