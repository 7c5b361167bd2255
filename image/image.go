// Package image knows the objects code was executed from: ELF files, the
// kernel and its modules, the vdso, JIT code. An Image is an identity that
// costs nothing until a name is asked of it; then its file is found (by path,
// build ID, debug link), checked against the recorded build ID, opened once
// and read defensively, because debug/elf is not hardened.
//
// An address of the recorded program is an Addr, image and offset, and is
// interned as a Loc: everything after package session speaks of Locs and
// symbolises each of them once, at the end.
package image

// Kind says where an image's code comes from and so how its Offsets count.
type Kind uint8

const (
	File    Kind = iota // a mapped file: offsets are file offsets
	Kernel              // the kernel proper: offsets are addresses at recording time
	Module              // a kernel module: offsets from the module's load address
	VDSO                // the kernel's page for user code: offsets from its first byte
	JIT                 // anonymous or otherwise fileless memory of one process: offsets are addresses
	BPF                 // a KSYMBOL: offsets from its first byte
	Unknown             // no mapping covers the address: offsets are addresses
)

// Key identifies an image.
type Key struct {
	Kind    Kind
	Path    string // as recorded; "[kernel.kallsyms]", "[vdso]", "//anon"...
	BuildID string // lower-case hex, "" if not recorded
	PID     int32  // the process JIT code belongs to, else 0
}

// Addr is a place in an image. A return address names the instruction behind
// a call, which may belong to another function or line, even to none (calls
// of functions that never return end a function); so the two are different
// kinds of address, and names for a return address are looked up one byte
// before it.
type Addr struct {
	Image  *Image
	Offset uint64
	Return bool
}

// Loc is an Addr interned by a Store: a dense number from 0 on, so that what
// is known of an address can be kept in a slice.
type Loc uint32
