package image

import (
	"os"
	"path/filepath"

	"github.com/perfcorrect/perfcorrect/image/debuginfo"
)

// Options say where a Store looks for files. The zero value is what perf does
// by default.
type Options struct {
	Symfs      string   // prefix of every recorded path (perf --symfs)
	BuildIDDir string   // perf's build-ID cache; default $PERF_BUILDID_DIR, else ~/.debug
	DebugDirs  []string // where distributions put debug files; default /usr/lib/debug
	Kallsyms   string   // a kallsyms file to believe whatever its build ID
	Vmlinux    string   // a kernel ELF to believe if its build ID is the recorded one
	SameHost   bool     // the recording is known to be of this host and boot
	// Debuginfod names servers to ask for files by build ID, separated by
	// spaces; default $DEBUGINFOD_URLS, "none" for none.
	Debuginfod string
	NoDemangle bool
	Names      NameForm // of C++ and Rust functions; default PerfNames
	// MergeClones names the clones and parts compilers make of a function
	// ("f.cold", "f.constprop.0") after it.
	MergeClones bool
}

// Store interns images and locations and names them on demand. It is used
// from one goroutine at a time.
//
// Images must be given before locations are named: what a Store finds out
// about an image it keeps.
type Store struct {
	opt    Options
	images []*Image
	byKey  map[Key]*Image
	locs   locTable

	functions  []*Function          // by Loc; nil not looked up yet, notFound none
	sites      []uint64             // by Loc: offset of the call instruction plus one; 0 not looked up yet
	lines      []position           // by Loc
	inlined    []*debuginfo.Inlined // by Loc: the innermost call inlined there
	files      openFiles
	debuginfod *debuginfod
	procDir    string            // where processes are; tests have another
	perfMaps   map[int32]*symtab // by process
	kernel     *kernelSymbols    // kallsyms, once read
	demangled  map[string]string
	plt        map[*Function]*Function
}

// NewStore returns an empty Store.
func NewStore(opt Options) *Store {
	if opt.BuildIDDir == "" {
		opt.BuildIDDir = os.Getenv("PERF_BUILDID_DIR")
	}
	if opt.BuildIDDir == "" {
		if home, err := os.UserHomeDir(); err == nil {
			opt.BuildIDDir = filepath.Join(home, ".debug")
		}
	}
	if opt.DebugDirs == nil {
		opt.DebugDirs = []string{"/usr/lib/debug"}
	}
	if opt.Debuginfod == "" {
		opt.Debuginfod = os.Getenv("DEBUGINFOD_URLS")
	}
	return &Store{
		opt:        opt,
		procDir:    "/proc",
		debuginfod: newDebuginfod(opt.Debuginfod),
		byKey:      map[Key]*Image{},
		perfMaps:   map[int32]*symtab{},
		demangled:  map[string]string{},
	}
}

// SetSameHost says that the recording is of this host and boot, so that
// /proc/kallsyms and process files describe it. Callers that learn this only
// from the recording say it before the first name is asked for.
func (s *Store) SetSameHost(same bool) { s.opt.SameHost = same }

// Image returns the image with this key, always the same one.
func (s *Store) Image(k Key) *Image {
	if im := s.byKey[k]; im != nil {
		return im
	}
	im := &Image{Key: k, store: s, id: uint32(len(s.images))}
	s.images = append(s.images, im)
	s.byKey[k] = im
	return im
}

// Images returns every image interned so far, in the order of first mention.
func (s *Store) Images() []*Image { return s.images }

// Loc interns an address. An Addr without image belongs to the image of kind
// Unknown.
func (s *Store) Loc(a Addr) Loc {
	if a.Image == nil {
		a.Image = s.Image(Key{Kind: Unknown})
	}
	ref := a.Image.id << 1
	if a.Return {
		ref |= 1
	}
	return s.locs.intern(a.Offset, ref)
}

// Addr is the inverse of Loc.
func (s *Store) Addr(l Loc) Addr {
	k := s.locs.keys[l]
	return Addr{Image: s.images[k.ref>>1], Offset: k.offset, Return: k.ref&1 != 0}
}

// NumLocs returns how many Locs there are: they are 0 to NumLocs()-1.
func (s *Store) NumLocs() int { return len(s.locs.keys) }

// notFound stands in Store.functions for "looked up, nothing there".
var notFound = new(Function)

// Function returns the function a location is in, or nil if none is known to
// cover it. A return address is looked up one byte before: the call
// instruction is there, and what follows it may be another function.
func (s *Store) Function(l Loc) *Function {
	if int(l) >= len(s.functions) {
		s.functions = grow(s.functions, len(s.locs.keys))
	}
	f := s.functions[l]
	if f == nil {
		if f = s.lookup(l); f == nil {
			f = notFound
		}
		s.functions[l] = f
	}
	if f == notFound {
		return nil
	}
	return f
}

func (s *Store) lookup(l Loc) *Function {
	a := s.Addr(l)
	if a.Return && a.Offset > 0 {
		a.Offset--
	}
	return a.Image.FunctionAt(a.Offset)
}

// grow lengthens a slice kept by Loc to n elements, with room to go on.
func grow[T any](old []T, n int) []T {
	if n <= cap(old) {
		return old[:n]
	}
	s := make([]T, n, n+n/2)
	copy(s, old)
	return s
}
