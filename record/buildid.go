package record

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// buildIDs collects the build IDs of everything that is mapped, each file as
// soon as a record names it: by the end it may have been replaced or deleted.
type buildIDs struct {
	seen map[fileKey]bool
	list []perfdata.BuildID

	missing int // files that had none, or were not to be found any more
}

// fileKey tells files of the same name apart.
type fileKey struct {
	path     string
	ino, gen uint64
	maj, min uint32
}

func newBuildIDs() *buildIDs { return &buildIDs{seen: map[fileKey]bool{}} }

// mapped handles one mapping.
func (b *buildIDs) mapped(r *perfdata.Mmap) {
	name := r.Filename
	if name == "" || name[0] != '/' || strings.HasPrefix(name, "//anon") ||
		strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/memfd:") || strings.HasPrefix(name, "/SYSV") {
		return
	}
	k := fileKey{name, r.Ino, r.InoGen, r.Maj, r.Min}
	if b.seen[k] {
		return
	}
	b.seen[k] = true
	id := fileBuildID(r)
	if id == nil {
		b.missing++
		return
	}
	b.list = append(b.list, perfdata.BuildID{PID: kernelPID, Misc: perfdata.MiscUser, ID: id, Filename: name})
}

// fileBuildID reads the mapped file's build ID: under its name as seen from
// here, or from the process (containers), if it is still the file that was
// mapped.
func fileBuildID(r *perfdata.Mmap) []byte {
	for _, path := range []string{r.Filename, filepath.Join("/proc", itoa(r.MapPID), "root", r.Filename)} {
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		var id []byte
		if err == nil && info.Mode().IsRegular() && sameInode(info, r.Ino) {
			id = ReadBuildID(f)
		}
		f.Close()
		if id != nil {
			return id
		}
	}
	return nil
}

// sameInode compares the file number only: overlay and btrfs show other
// devices to stat(2) than to the kernel's records.
func sameInode(info os.FileInfo, ino uint64) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || ino == 0 || st.Ino == ino
}

func itoa(n int32) string {
	if n < 0 {
		return "self"
	}
	var b [12]byte
	i := len(b)
	for {
		i--
		b[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return string(b[i:])
		}
	}
}

// Bounds for what a file may claim of itself.
const (
	maxProgramHeaders = 1 << 10
	maxNotes          = 1 << 20
	maxBuildID        = 64
)

// ReadBuildID reads the note NT_GNU_BUILD_ID of an ELF file, nil if it has
// none or is no ELF file. It reads little and believes nothing: the file is
// whatever somebody mapped. Segments are searched, not sections, which may
// have been stripped.
func ReadBuildID(r io.ReaderAt) []byte {
	var h [64]byte
	if n, _ := r.ReadAt(h[:], 0); n < 52 || string(h[:4]) != "\x7fELF" {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if h[5] == 2 {
		order = binary.BigEndian
	}
	is64 := h[4] == 2
	phoff, phentsize, phnum := uint64(order.Uint32(h[28:])), order.Uint16(h[42:]), order.Uint16(h[44:])
	want := uint16(32)
	if is64 {
		phoff, phentsize, phnum = order.Uint64(h[32:]), order.Uint16(h[54:]), order.Uint16(h[56:])
		want = 56
	}
	if phentsize < want || phnum > maxProgramHeaders || phoff > 1<<62 {
		return nil
	}
	ph := make([]byte, want)
	for i := range uint64(phnum) {
		if _, err := r.ReadAt(ph, int64(phoff+i*uint64(phentsize))); err != nil {
			return nil
		}
		if order.Uint32(ph) != 4 { // PT_NOTE
			continue
		}
		off, size := uint64(order.Uint32(ph[4:])), uint64(order.Uint32(ph[16:]))
		if is64 {
			off, size = order.Uint64(ph[8:]), order.Uint64(ph[32:])
		}
		if size > maxNotes || off > 1<<62 {
			continue
		}
		notes, err := io.ReadAll(io.NewSectionReader(r, int64(off), int64(size)))
		if err != nil {
			continue
		}
		if id := BuildIDInNotes(notes, order); id != nil {
			return id
		}
	}
	return nil
}

// BuildIDInNotes finds NT_GNU_BUILD_ID among ELF notes, as they also stand in
// /sys/kernel/notes.
func BuildIDInNotes(b []byte, order binary.ByteOrder) []byte {
	const ntBuildID = 3
	for len(b) >= 12 {
		namesz, descsz, typ := uint64(order.Uint32(b)), uint64(order.Uint32(b[4:])), order.Uint32(b[8:])
		b = b[12:]
		name := (namesz + 3) &^ 3
		desc := (descsz + 3) &^ 3
		if name > uint64(len(b)) || descsz > uint64(len(b))-name {
			return nil
		}
		if typ == ntBuildID && namesz == 4 && string(b[:4]) == "GNU\x00" && descsz > 0 && descsz <= maxBuildID {
			return append([]byte(nil), b[name:name+descsz]...)
		}
		b = b[min(name+desc, uint64(len(b))):]
	}
	return nil
}

// kernel adds the build IDs of the running kernel and its modules.
func (b *buildIDs) kernel(modules []*perfdata.Mmap) {
	add := func(notes, name string) {
		data, err := os.ReadFile(notes)
		if err != nil {
			return
		}
		if id := BuildIDInNotes(data, binary.NativeEndian); id != nil {
			b.list = append(b.list, perfdata.BuildID{PID: kernelPID, Misc: perfdata.MiscKernel, ID: id, Filename: name})
		}
	}
	add("/sys/kernel/notes", kernelName)
	for _, m := range modules {
		name := strings.Trim(m.Filename, "[]")
		add("/sys/module/"+name+"/notes/.note.gnu.build-id", m.Filename)
	}
}
