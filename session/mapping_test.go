package session

import (
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

func TestMappingsChange(t *testing.T) {
	data := mmap(1, 0x5000, 0x1000, 0, "/b")
	data.Misc |= perfdata.MiscMmapData
	slow := mmap(1, 0x20000, 0x1000, 0, "/c")
	slow.Misc |= perfdata.MiscProcMapParseTimeout
	got, s := run(t, newFeed(
		at(0, 1, 1, slow),
		at(1, 1, 1, mmap(1, 0x1000, 0x8000, 0x200, "/a")),
		at(2, 1, 1, tick(0x5010)),
		at(3, 1, 1, mmap(1, 0x5000, 0x1000, 0, "/b")),
		at(4, 1, 1, tick(0x4fff)),
		at(5, 1, 1, tick(0x5010)),
		at(6, 1, 1, tick(0x6000)),
		at(7, 1, 1, data),
		at(8, 1, 1, tick(0x5010)),
		at(9, 2, 2, tick(0x5010)),
	))
	expectLeaves(t, got, "/a", 0x4210, "/a", 0x41ff, "/b", 0x10, "/a", 0x5200, "", 0x5010, "", 0x5010)
	if st := s.Stats(); st.Unresolved != 2 || st.DataMappings != 1 || st.MissingMappings != 1 || st.UnknownThread != 6 {
		t.Errorf("%+v", st)
	}
}

func TestForkCopies(t *testing.T) {
	got, _ := run(t, newFeed(
		at(1, 1, 1, mmap(1, 0x1000, 0x1000, 0, "/a")),
		at(2, 1, 1, fork(1, 1, 1, 11)), // a thread shares
		at(3, 1, 1, fork(1, 1, 2, 2)),  // a process copies
		at(4, 1, 11, mmap(1, 0x1000, 0x1000, 0, "/thread")),
		at(5, 1, 1, tick(0x1001)),
		at(6, 1, 11, tick(0x1002)),
		at(7, 2, 2, tick(0x1003)),
		at(8, 2, 2, mmap(2, 0x1000, 0x800, 0, "/child")),
		at(9, 1, 1, tick(0x1004)),
		at(10, 2, 2, tick(0x1005)),
		at(11, 2, 2, tick(0x1805)),
	))
	expectLeaves(t, got, "/thread", 1, "/thread", 2, "/a", 3, "/thread", 4, "/child", 5, "/a", 0x805)
}

// TestSynthesisedFork: perf follows its own FORK records with the mappings.
func TestSynthesisedFork(t *testing.T) {
	f := fork(1, 1, 2, 2)
	f.Misc = perfdata.MiscForkExec
	got, _ := run(t, newFeed(
		at(0, 1, 1, mmap(1, 0x1000, 0x1000, 0, "/a")),
		at(0, 0, 0, f),
		at(5, 2, 2, tick(0x1001)),
	))
	expectLeaves(t, got, "", 0x1001)
}

func TestExecDropsMappings(t *testing.T) {
	oldCaller := kernelTick(0xffffffff81000100, 0xffffffff81000200, perfdata.ContextUser, 0x1010)
	got, _ := run(t, newFeed(
		at(0, 1, 1, comm(1, 1, "perf")),
		at(0, 1, 1, mmap(1, 0x1000, 0x9000, 0, "/usr/bin/perf")),
		at(1, 1, 1, execComm(1, "a")),
		at(2, 1, 1, oldCaller),
		at(3, 1, 1, mmap(1, 0x4000, 0x1000, 0, "/a")),
		at(4, 1, 1, tick(0x4001)),
		at(5, 1, 1, tick(0x1010)),
	))
	if a := got[0].addrs[2]; a.Image.Path != "/usr/bin/perf" || a.Offset != 0x10 || a.Return || got[0].comm != "a" {
		t.Errorf("while exec runs, the caller is at %+v in %s", a, got[0].comm)
	}
	expectLeaves(t, got[1:], "/a", 1, "", 0x1010)
}

func TestPIDReuse(t *testing.T) {
	got, _ := run(t, newFeed(
		at(1, 1, 1, comm(1, 1, "init")),
		at(1, 1, 1, mmap(1, 0x1000, 0x1000, 0, "/init")),
		at(2, 1, 1, fork(1, 1, 7, 7)),
		at(3, 7, 7, execComm(7, "first")),
		at(4, 7, 7, mmap(7, 0x8000, 0x1000, 0, "/first")),
		at(5, 7, 7, tick(0x8001)),
		at(6, 7, 7, exit(7, 7)),
		at(7, 7, 7, tick(0x8002)), // still running in do_exit
		at(8, 1, 1, fork(1, 1, 7, 7)),
		at(9, 7, 7, tick(0x8003)),
		at(10, 7, 7, tick(0x1003)),
	))
	expectLeaves(t, got, "/first", 1, "/first", 2, "", 0x8003, "/init", 3)
	for i, want := range []string{"first", "first", "init", "init"} {
		if got[i].comm != want {
			t.Errorf("sample %d is %s's, want %s", i, got[i].comm, want)
		}
	}
}

// TestNumberTakenOver: another process has a thread's number, though no record
// says how (they were lost).
func TestNumberTakenOver(t *testing.T) {
	got, _ := run(t, newFeed(
		at(1, 1, 5, comm(1, 5, "worker")),
		at(2, 1, 1, mmap(1, 0x1000, 0x1000, 0, "/a")),
		at(3, 1, 5, tick(0x1000)),
		at(4, 5, 5, tick(0x1000)),
	))
	expectLeaves(t, got, "/a", 0, "", 0x1000)
	if got[0].comm != "worker" || got[1].comm != ":5" || got[1].pid != 5 {
		t.Errorf("%+v", got)
	}
}

// TestExecOfThread: a thread that calls exec takes the number of the first.
func TestExecOfThread(t *testing.T) {
	_, s := run(t, newFeed(
		at(1, 1, 1, comm(1, 1, "a")),
		at(2, 1, 1, fork(1, 1, 1, 2)),
		at(3, 1, 1, fork(1, 1, 1, 3)),
		at(4, 1, 1, exit(1, 1)),
		at(5, 1, 1, execComm(1, "b")),
		at(6, 1, 1, tick(0x1000)),
	))
	if n := len(s.threads.byTID); n != 2 { // idle and 1
		t.Errorf("%d threads are left", n)
	}
	if p := s.threads.processes[1]; p == nil || p.threads != 1 {
		t.Errorf("process 1: %+v", p)
	}
}

func TestCommOverTime(t *testing.T) {
	got, s := run(t, newFeed(
		at(1, 1, 1, tick(0x1000)),
		at(2, 1, 1, comm(1, 1, "a")),
		at(3, 1, 1, fork(1, 1, 1, 2)),
		at(4, 1, 2, tick(0x1000)),
		at(5, 1, 2, comm(1, 2, "worker")),
		at(6, 1, 2, tick(0x1000)),
		at(7, 1, 1, tick(0x1000)),
		at(8, 0, 0, tick(0x1000)),
		at(9, 9, 9, tick(0x1000)),
	))
	for i, want := range []string{":1", "a", "worker", "a", "swapper", ":9"} {
		if got[i].comm != want {
			t.Errorf("sample %d is %s's, want %s", i, got[i].comm, want)
		}
	}
	if st := s.Stats(); st.UnknownThread != 2 || st.Threads != 3 {
		t.Errorf("%+v", st)
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		name, buildID string
		want          image.Kind
	}{
		{"/usr/bin/ls", "", image.File},
		{"/usr/bin/ls (deleted)", "", image.JIT},
		{"/usr/bin/ls (deleted)", "ab", image.File},
		{"//anon", "", image.JIT},
		{"", "", image.JIT},
		{"[heap]", "", image.JIT},
		{"[stack:12]", "", image.JIT},
		{"[anon:v8]", "", image.JIT},
		{"/dev/zero (deleted)", "", image.JIT},
		{"/memfd:doublemapper (deleted)", "", image.JIT},
		{"/anon_hugepage (deleted)", "", image.JIT},
		{"/SYSV00000000 (deleted)", "", image.JIT},
		{"[vdso]", "", image.VDSO},
		{"[vsyscall]", "", image.Unknown},
		{"[uprobes]", "", image.Unknown},
	} {
		if got := kindOf(c.name, c.buildID); got != c.want {
			t.Errorf("%q %q: %d, want %d", c.name, c.buildID, got, c.want)
		}
	}
}

func TestOffsetsByKind(t *testing.T) {
	got, _ := run(t, newFeed(
		at(1, 3, 3, mmap(3, 0x10000, 0x1000, 0x777000, "//anon")),
		at(1, 3, 3, mmap(3, 0x20000, 0x1000, 0x20000, "[vdso]")),
		at(1, 3, 3, mmap(3, 0xffffffffff600000, 0x1000, 0, "[vsyscall]")),
		at(2, 3, 3, tick(0x10005)),
		at(2, 3, 3, tick(0x20005)),
		at(2, 3, 3, tick(0xffffffffff600400)),
	))
	for i, want := range []image.Addr{
		{Image: &image.Image{Key: image.Key{Kind: image.JIT, Path: "//anon", PID: 3}}, Offset: 0x10005},
		{Image: &image.Image{Key: image.Key{Kind: image.VDSO, Path: "[vdso]"}}, Offset: 5},
		{Image: &image.Image{Key: image.Key{Kind: image.Unknown, Path: "[vsyscall]"}}, Offset: 0x400},
	} {
		if a := got[i].addrs[0]; a.Image.Key != want.Image.Key || a.Offset != want.Offset {
			t.Errorf("sample %d is in %+v at %#x", i, a.Image.Key, a.Offset)
		}
	}
}

func kernelMap(addr, length, pgoff uint64, name string) *perfdata.Mmap {
	m := mmap(-1, addr, length, pgoff, name)
	m.Misc = perfdata.MiscKernel
	return m
}

func TestKernel(t *testing.T) {
	ksym := func(addr uint64, name string, gone bool) *perfdata.Ksymbol {
		return &perfdata.Ksymbol{Addr: addr, Len: 0x100, Name: name, Unregister: gone}
	}
	const text, mod, bpf = 0xffffffff81000000, 0xffffffffc0100000, 0xffffffffc0200000
	f := newFeed(
		at(0, -1, 0, kernelMap(mod, 0x4000, 0, "/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz")),
		at(0, -1, 0, kernelMap(text, 0x1000000, text+0x40, "[kernel.kallsyms]_text")),
		at(1, 1, 1, kernelTick(text+0x123)),
		at(2, 1, 1, kernelTick(mod+0x10)),
		at(3, 1, 1, kernelTick(bpf+0x10)),
		at(4, 1, 1, ksym(bpf, "bpf_prog_1", false)),
		at(5, 1, 1, kernelTick(bpf+0x10)),
		at(6, 1, 1, ksym(bpf, "", true)),
		at(7, 1, 1, kernelTick(bpf+0x10)),
		at(8, 1, 1, kernelTick(text+0x2000000)), // init text, behind _etext
		at(9, 1, 1, kernelTick(0xffff888000000000)),
	)
	f.meta.BuildIDs = []perfdata.BuildID{
		{Misc: perfdata.MiscKernel, ID: []byte{0xab, 1}, Filename: "[kernel.kallsyms]"},
		{Misc: perfdata.MiscKernel, ID: []byte{0xcd, 2}, Filename: "[ext4]"},
	}
	got, _ := run(t, f)
	for i, want := range []image.Key{
		{Kind: image.Kernel, Path: "[kernel.kallsyms]", BuildID: "ab01"},
		{Kind: image.Module, Path: "/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz", BuildID: "cd02"},
		{Kind: image.Unknown},
		{Kind: image.BPF, Path: "bpf_prog_1"},
		{Kind: image.Unknown},
		{Kind: image.Kernel, Path: "[kernel.kallsyms]", BuildID: "ab01"},
		{Kind: image.Unknown},
	} {
		if a := got[i].addrs[0]; a.Image.Key != want {
			t.Errorf("sample %d is in %+v, want %+v", i, a.Image.Key, want)
		}
	}
	for i, want := range map[int]uint64{0: text + 0x123, 1: 0x10, 3: 0x10} {
		if _, off := got[i].leaf(); off != want {
			t.Errorf("sample %d has offset %#x, want %#x", i, off, want)
		}
	}
}

func TestBuildIDs(t *testing.T) {
	own := mmap(1, 0x3000, 0x1000, 0, "/c")
	own.Misc |= perfdata.MiscMmapBuildID
	own.BuildID = []byte{7, 8}
	f := newFeed(
		at(1, 1, 1, mmap(1, 0x1000, 0x1000, 0, "/a")),
		at(1, 1, 1, mmap(1, 0x2000, 0x1000, 0, "/b")),
		at(1, 1, 1, own),
		at(2, 1, 1, tick(0x1000)),
		at(2, 1, 1, tick(0x2000)),
		at(2, 1, 1, tick(0x3000)),
	)
	f.meta.BuildIDs = []perfdata.BuildID{
		{PID: -1, Misc: perfdata.MiscUser, ID: []byte{0x12, 0x34}, Filename: "/a"},
		{PID: -1, Misc: perfdata.MiscUser, ID: []byte{0xff}, Filename: "/c"},
	}
	got, _ := run(t, f)
	for i, want := range []string{"1234", "", "0708"} {
		if id := got[i].addrs[0].Image.BuildID; id != want {
			t.Errorf("sample %d: build ID %q, want %q", i, id, want)
		}
	}
}

func TestReturnAddressesBehindMapping(t *testing.T) {
	got, _ := run(t, newFeed(
		at(1, 1, 1, mmap(1, 0x1000, 0x1000, 0, "/a")),
		at(1, 1, 1, mmap(1, 0x3000, 0x1000, 0, "/b")),
		at(2, 1, 1, tick(0x1000, 0x2000, 0x3000)), // /a ends at 0x2000, nothing before 0x3000
	))
	a := got[0].addrs
	if a[1].Image.Path != "/a" || a[1].Offset != 0x1000 || !a[1].Return {
		t.Errorf("return address behind /a: %+v", a[1])
	}
	if a[2].Image.Path != "/b" || a[2].Offset != 0 {
		t.Errorf("return address at the start of /b: %+v", a[2])
	}
}

func TestMappingsAtTheEnd(t *testing.T) {
	got, _ := run(t, newFeed(
		at(1, 1, 1, mmap(1, 0x1000, ^uint64(0), 0, "/huge")),
		at(1, 1, 1, mmap(1, 0x2000, 0, 0, "/empty")),
		at(2, 1, 1, tick(0x2000)),
		at(2, 1, 1, tick(0x7fff00000000)),
	))
	expectLeaves(t, got, "/huge", 0x1000, "/huge", 0x7ffefffff000)
}

// TestShortProcesses: what is remembered follows the living, not the dead.
func TestShortProcesses(t *testing.T) {
	f := newFeed(at(0, 1, 1, comm(1, 1, "sh")), at(0, 1, 1, mmap(1, 0x1000, 0x1000, 0, "/sh")))
	for i := range int32(20000) {
		pid := 1000 + i
		f.records = append(f.records,
			at(uint64(i)+1, 1, 1, fork(1, 1, pid, pid)),
			at(uint64(i)+1, pid, pid, execComm(pid, "true")),
			at(uint64(i)+1, pid, pid, mmap(pid, 0x4000, 0x1000, 0, "/true")),
			at(uint64(i)+1, pid, pid, mmap(pid, 0x8000, 0x1000, 0, "//anon")),
			at(uint64(i)+1, pid, pid, tick(0x4000)),
			at(uint64(i)+1, pid, pid, exit(pid, pid)),
		)
		f.records[len(f.records)-2].(*perfdata.Sample).Event = f.meta.Events[0]
	}
	_, s := run(t, f)
	if n := len(s.threads.byTID); n > keptExited+2 {
		t.Errorf("%d threads are remembered", n)
	}
	if n := len(s.threads.processes); n > keptExited+2 {
		t.Errorf("%d processes are remembered", n)
	}
	if len(s.objects) != 2 || len(s.instances) != 0 || s.live != 0 {
		t.Errorf("%d objects, %d instances, %d copied mappings", len(s.objects), len(s.instances), s.live)
	}
	if n := len(s.store.Images()); n > 3 {
		t.Errorf("%d images", n)
	}
}
