package session

import (
	"encoding/hex"
	"path"
	"strings"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

// kernelSpace is the kernel's half of every address space: the kernel proper,
// and over it modules and what KSYMBOL records announce.
type kernelSpace struct {
	base mapping // of the kernel proper
	over space
	ref  reference
}

// reference is where the recorded kernel had one of its symbols.
type reference struct {
	symbol string
	addr   uint64
}

const kernelName = "[kernel.kallsyms]"

// newKernelSpace returns what is assumed until the recording says more: the
// upper half is the kernel.
func newKernelSpace() kernelSpace {
	o := &object{key: image.Key{Kind: image.Kernel, Path: kernelName}}
	return kernelSpace{base: mapping{start: 1 << 63, end: ^uint64(0), obj: o}}
}

func (k *kernelSpace) find(addr uint64) *mapping {
	if m := k.over.find(addr); m != nil {
		return m
	}
	if k.base.start <= addr && addr < k.base.end {
		return &k.base
	}
	if k.base.end <= addr && addr < k.imageEnd() {
		return &k.base
	}
	return nil
}

// imageEnd is the end of what can be the kernel proper. perf records the part
// up to _etext; the code that boots the machine, and stays on the stack of
// idle threads, lies behind the data. On x86-64 everything below the modules'
// area is the kernel's (arch/x86/include/asm/page_64_types.h,
// KERNEL_IMAGE_SIZE).
func (k *kernelSpace) imageEnd() uint64 {
	const x86Text, x86Modules = 0xffffffff80000000, 0xffffffffc0000000
	if k.base.start >= x86Text && k.base.end <= x86Modules {
		return x86Modules
	}
	return k.base.end
}

// kernelMmap handles an MMAP record of the kernel, which perf makes itself
// (tools/perf/util/event.c, perf_event__synthesize_kernel_mmap): the kernel
// with the address of a reference symbol in pgoff, or a module.
func (s *Session) kernelMmap(r *perfdata.Mmap) {
	end := r.Addr + r.Len
	if end < r.Addr || (r.Addr == 0 && r.Len == 0) { // no right to see addresses
		end = ^uint64(0)
	}
	id := hex.EncodeToString(r.BuildID)
	s.nextGen(&s.kernel.over)
	if symbol, ok := strings.CutPrefix(r.Filename, kernelName); ok {
		o := &object{key: image.Key{Kind: image.Kernel, Path: kernelName, BuildID: id}}
		s.kernel.base = mapping{start: r.Addr, end: end, obj: o}
		if symbol != "" && r.Pgoff != 0 {
			s.kernel.ref = reference{symbol, r.Pgoff}
		}
		return
	}
	o := &object{key: image.Key{Kind: image.Module, Path: r.Filename, BuildID: id}}
	s.kernel.over.insert(mapping{start: r.Addr, end: end, bias: r.Addr, obj: o})
}

// ksymbol handles KSYMBOL: kernel text that comes and goes at run time.
func (s *Session) ksymbol(r *perfdata.Ksymbol) {
	s.nextGen(&s.kernel.over)
	if r.Unregister {
		s.kernel.over.remove(r.Addr)
		return
	}
	s.kernel.over.insert(mapping{
		start: r.Addr, end: r.Addr + uint64(r.Len), bias: r.Addr,
		obj: &object{key: image.Key{Kind: image.BPF, Path: r.Name}},
	})
}

// tellImage passes on what the mapping of a kernel image says besides its range.
func (s *Session) tellImage(m *mapping, im *image.Image) {
	switch im.Kind {
	case image.Kernel:
		if s.kernel.ref.symbol != "" {
			im.SetReference(s.kernel.ref.symbol, s.kernel.ref.addr)
		}
	case image.Module:
		im.SetLoadAddress(m.bias)
	}
}

// isModule tells the name of a kernel module ("[ext4]", "/lib/.../ext4.ko.xz")
// from that of a kernel.
func isModule(name string) bool {
	if strings.HasPrefix(name, "[") {
		return !strings.HasPrefix(name, "[kernel") && !strings.HasPrefix(name, "[guest")
	}
	return strings.Contains(path.Base(name), ".ko")
}

// moduleName is the short name perf gives a module: "[ext4]". The kernel
// treats - and _ in module names alike.
func moduleName(name string) string {
	if strings.HasPrefix(name, "[") {
		return name
	}
	base, _, _ := strings.Cut(path.Base(name), ".ko")
	return "[" + strings.ReplaceAll(base, "-", "_") + "]"
}
