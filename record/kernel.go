package record

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"runtime"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

const kernelName = "[kernel.kallsyms]"

// kernelPID is what records of the kernel's mappings have for a process.
const kernelPID = -1

// errNoKernelAddresses: the kernel keeps its addresses to itself.
var errNoKernelAddresses = errors.New("the kernel shows no addresses (kernel.kptr_restrict)")

// x86-64 keeps the kernel below the area of modules
// (arch/x86/include/asm/page_64_types.h, KERNEL_IMAGE_SIZE).
const (
	x86Kernel  = 0xffffffff80000000
	x86Modules = 0xffffffffc0000000
)

// kernelMap makes the record of the kernel's own mapping: from _text or
// _stext, with the address of that symbol as page offset and its name in the
// file's (tools/perf/util/synthetic-events.c,
// __perf_event__synthesize_kernel_mmap), so that a reader can tell how far a
// kernel was moved when it booted.
//
// perf ends the mapping at _etext, for which it reads all of kallsyms, which
// the kernel makes up line by line: tens of milliseconds. On x86-64 the end of
// the area does as well, and the first lines have the beginning.
func kernelMap(proc fs.FS) (*perfdata.Mmap, error) {
	f, err := proc.Open("kallsyms")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found := map[string]uint64{}
	s := bufio.NewScanner(f)
	for lines := 0; s.Scan() && len(found) < 3; lines++ {
		if lines > 1000 && endOfArea(found) != 0 {
			break
		}
		// ffffffff81000000 T _text
		addr, rest, ok := bytes.Cut(s.Bytes(), []byte(" "))
		if !ok || len(rest) < 3 {
			continue
		}
		switch name := string(rest[2:]); name {
		case "_text", "_stext", "_etext":
			if found[name], err = strconv.ParseUint(string(addr), 16, 64); err != nil {
				return nil, err
			}
		}
		if found["_text"] != 0 && endOfArea(found) != 0 {
			break
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	symbol := "_text"
	if found[symbol] == 0 {
		symbol = "_stext"
	}
	start, end := found[symbol], found["_etext"]
	if end == 0 {
		end = endOfArea(found)
	}
	if start == 0 || end <= start {
		return nil, errNoKernelAddresses
	}
	return &perfdata.Mmap{
		Common: perfdata.Common{Type: perfdata.TypeMmap, Misc: perfdata.MiscKernel},
		MapPID: kernelPID, Addr: start, Len: end - start, Pgoff: start, Filename: kernelName + symbol,
	}, nil
}

// endOfArea is where a kernel that begins there ends at the latest, 0 if that
// is not known.
func endOfArea(found map[string]uint64) uint64 {
	if start := max(found["_text"], found["_stext"]); start >= x86Kernel && start < x86Modules && runtime.GOARCH == "amd64" {
		return x86Modules
	}
	return 0
}

// modules makes a record for each loaded module. /proc/modules has its name,
// size (of text and data together) and address.
func modules(proc fs.FS) ([]*perfdata.Mmap, error) {
	b, err := fs.ReadFile(proc, "modules")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a kernel without modules
	}
	if err != nil {
		return nil, err
	}
	var all []*perfdata.Mmap
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		size, err1 := strconv.ParseUint(f[1], 10, 64)
		addr, err2 := strconv.ParseUint(strings.TrimPrefix(f[5], "0x"), 16, 64)
		if err1 != nil || err2 != nil || addr == 0 {
			continue
		}
		all = append(all, &perfdata.Mmap{
			Common: perfdata.Common{Type: perfdata.TypeMmap, Misc: perfdata.MiscKernel},
			MapPID: kernelPID, Addr: addr, Len: size, Filename: "[" + f[0] + "]",
		})
	}
	return all, nil
}
