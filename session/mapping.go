package session

import (
	"encoding/hex"
	"strings"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// object is what mappings show. Its image is interned when the first address
// in it is seen: most mapped objects are never executed, and in a pipe the
// build ID may come after the mapping (perf inject -b).
type object struct {
	key     image.Key
	image   *image.Image
	process int32          // the last one that mapped it
	module  *unwind.Module // for unwinding, nil if there is no file
	hasCFI  bool           // module has been looked for
}

// fileKey identifies objects that are the same file.
type fileKey struct {
	path    string
	buildID string
	kind    image.Kind
}

// userMapping makes the mapping of an MMAP or MMAP2 record of a process.
func (s *Session) userMapping(r *perfdata.Mmap) mapping {
	m := mapping{start: r.Addr, end: r.Addr + r.Len, bias: r.Addr - r.Pgoff}
	if m.end < m.start {
		m.end = ^uint64(0)
	}
	if r.Misc&perfdata.MiscMmapData != 0 {
		s.stats.DataMappings++
		return m // may hide code, is none
	}
	id := hex.EncodeToString(r.BuildID)
	switch kind := kindOf(r.Filename, id); kind {
	case image.JIT:
		m.bias = 0
		// Not shared with other processes and so not kept: it goes with the space.
		m.obj = &object{key: image.Key{Kind: kind, Path: r.Filename, BuildID: id, PID: r.MapPID}}
	case image.VDSO:
		m.bias = r.Addr
		m.obj = s.object(kind, r.Filename, id)
	default:
		m.obj = s.object(kind, r.Filename, id)
		m.obj.process = r.MapPID
	}
	return m
}

// object interns a file.
func (s *Session) object(kind image.Kind, path, buildID string) *object {
	k := fileKey{path, buildID, kind}
	o := s.objects[k]
	if o == nil {
		o = &object{key: image.Key{Kind: kind, Path: path, BuildID: buildID}}
		s.objects[k] = o
	}
	return o
}

// kindOf classifies a mapped name as perf does (tools/perf/util/map.c,
// is_anon_memory and is_no_dso_memory), and adds the other ways JITs get
// their memory. A deleted file is code of an object only if a build ID says
// which; without, the name is all there is, and it may be the temporary file a
// JIT maps twice.
func kindOf(name, buildID string) image.Kind {
	switch {
	case name == "[vdso]" || name == "[vdso32]" || name == "[vdsox32]":
		return image.VDSO
	case name == "", name == "//anon", name == "[heap]",
		strings.HasPrefix(name, "[stack"), strings.HasPrefix(name, "[anon"),
		strings.HasPrefix(name, "/dev/zero"),
		strings.HasPrefix(name, "/anon_hugepage"),
		strings.HasPrefix(name, "/SYSV"),
		strings.HasPrefix(name, "/memfd:"), strings.HasPrefix(name, "memfd:"):
		return image.JIT
	case strings.HasSuffix(name, " (deleted)") && buildID == "":
		return image.JIT
	case name[0] == '[': // [vsyscall], [uprobes]: code of the kernel without a file
		return image.Unknown
	}
	return image.File
}

// imageOf interns the object's image. A build ID that the mapping itself did
// not give is looked up in the recording's table by name.
func (s *Session) imageOf(o *object) *image.Image {
	if o.image != nil {
		return o.image
	}
	if o.key.BuildID == "" && o.key.Kind != image.JIT && o.key.Kind != image.Unknown && o.key.Kind != image.BPF {
		o.key.BuildID = s.buildIDs.find(s.source.Meta(), o.key)
	}
	o.image = s.store.Image(o.key)
	o.image.SetProcess(o.process)
	return o.image
}

// buildIDs indexes Meta.BuildIDs, which grows while a pipe is read.
type buildIDs struct {
	seen   int
	byName map[string]string
	kernel string
}

func (b *buildIDs) find(meta *perfdata.Meta, k image.Key) string {
	for ; b.seen < len(meta.BuildIDs); b.seen++ {
		b.add(&meta.BuildIDs[b.seen])
	}
	if k.Kind == image.Kernel {
		return b.kernel
	}
	if id, ok := b.byName[k.Path]; ok {
		return id
	}
	if k.Kind == image.Module {
		return b.byName[moduleName(k.Path)]
	}
	return ""
}

func (b *buildIDs) add(e *perfdata.BuildID) {
	if b.byName == nil {
		b.byName = map[string]string{}
	}
	id := hex.EncodeToString(e.ID)
	b.byName[e.Filename] = id
	if e.Misc&perfdata.MiscCPUModeMask != perfdata.MiscKernel {
		return
	}
	if isModule(e.Filename) {
		b.byName[moduleName(e.Filename)] = id
	} else {
		b.kernel = id
	}
}
