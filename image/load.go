package image

import (
	"path"
	"strings"
)

// Image is an object code ran from. Its fields other than Key are found out
// when a name, a line or code of it is first asked for.
type Image struct {
	Key
	store *Store
	id    uint32

	process             int32 // one that had it mapped, 0 if not known
	reloc               relocation
	move                uint64 // what was added to link-time addresses of a Kernel
	loaded, unwoundDone bool
	file                *elfFile // code; nil if not found
	debug               *elfFile // separate debug file, if any
	symbols             *symtab  // nil if none
	jit                 *jitCode // from a jitdump file
	unnamed             *symtab  // functions known only from unwind tables
	functions           map[*symbol]*Function
	exports             map[string]uint64     // dynamic symbols by name: file offsets
	resolvers           map[uint64]bool       // of them, by offset: those of indirect functions
	described           int                   // Locs below this one have their lines
	callIndex           map[uint64][]callSite // by function entry
	problems            []Problem
}

// relocation ties recorded addresses to link-time ones: where a symbol was.
type relocation struct {
	symbol string
	addr   uint64
}

// SetReference says at which address the recorded kernel had one of its
// symbols (perf's kernel MMAP: "[kernel.kallsyms]_text", address in pgoff).
// It is what a vmlinux is relocated by when the kernel was moved (KASLR).
func (im *Image) SetReference(symbol string, addr uint64) { im.reloc = relocation{symbol, addr} }

// SetLoadAddress says where the recorded kernel had loaded a module; its
// symbols in kallsyms are absolute.
func (im *Image) SetLoadAddress(addr uint64) { im.reloc = relocation{"", addr} }

// SetProcess says that a process had the image mapped. On the host of the
// recording, while the process lives, its files are those of its root, which
// in a container is another than ours.
func (im *Image) SetProcess(pid int32) { im.process = pid }

// HasSymbols says whether any function of the image is known by name.
func (im *Image) HasSymbols() bool {
	im.load()
	return im.symbols != nil && len(im.symbols.all) > 0
}

// Name is what stands for the image in a frame without symbol: the last
// element of its path ("libc.so.6", "[vdso]", "[kernel.kallsyms]").
func (im *Image) Name() string {
	switch {
	case im.Kind == JIT && im.named() && !im.HasSymbols():
		return path.Base(strings.TrimSuffix(im.Path, " (deleted)"))
	case im.Kind == JIT:
		return "perf-" + itoa(int(im.PID)) + ".map"
	case im.Path == "":
		return "unknown"
	case strings.HasPrefix(im.Path, "["):
		return im.Path
	}
	return path.Base(im.Path)
}

// named says whether memory without a file has a name that tells more than
// the process it belongs to: that of a memfd, or of a file that is gone.
func (im *Image) named() bool {
	return strings.HasPrefix(im.Path, "/memfd:") || strings.HasPrefix(im.Path, "memfd:") || strings.HasSuffix(im.Path, " (deleted)")
}

func (im *Image) load() {
	if im.loaded {
		return
	}
	im.loaded = true
	switch im.Kind {
	case File:
		im.loadFile()
	case VDSO:
		im.loadVDSO()
	case Kernel:
		im.loadKernel()
	case Module:
		im.loadModule()
	case JIT:
		im.loadJIT()
	case BPF:
		im.loadBPF()
	}
}

// loadBPF makes the whole image one function: a KSYMBOL record is a name, an
// address and a length, and the name is all that can be known.
func (im *Image) loadBPF() {
	b := symtabBuilder{}
	b.add(symbol{start: 0, end: ^uint64(0), name: im.Path})
	im.symbols = b.finish()
}

// FunctionAt returns the function that covers an offset of the image, or nil.
func (im *Image) FunctionAt(offset uint64) *Function {
	im.load()
	if im.symbols != nil {
		if i := im.symbols.find(offset); i >= 0 {
			return im.function(&im.symbols.all[i])
		}
	}
	if t := im.unwound(); t != nil {
		if i := t.find(offset); i >= 0 {
			return im.function(&t.all[i])
		}
	}
	return nil
}

// function returns the Function of a symbol, made on first use: most symbols
// of a large program are never asked for.
func (im *Image) function(y *symbol) *Function {
	if f := im.functions[y]; f != nil {
		return f
	}
	f := &Function{System: y.name, Entry: y.start, End: y.end, Image: im, Stub: y.stub}
	if im.Kind == File && !y.stub {
		f.System = plainName(y.name)
	}
	f.Name = im.store.demangle(f.System)
	if im.functions == nil {
		im.functions = map[*symbol]*Function{}
	}
	im.functions[y] = f
	return f
}

// Function is a function of an image.
type Function struct {
	// Name is demangled as perf does, without parameters; System is the
	// symbol as it stands in the file. Both are "" for a function known only
	// from unwind tables.
	Name, System string
	// Entry and End are offsets in the image, in the unit of Addr.Offset;
	// End is the first byte behind.
	Entry, End uint64
	Image      *Image
	// Stub says that this is an entry of a procedure linkage table, which
	// jumps to the function it is named after ("puts@plt"): see
	// Store.ResolvePLT.
	Stub bool
	// File and StartLine are where the function is declared; filled by
	// Store.StartLine.
	File      string
	StartLine int
	lined     bool
}
