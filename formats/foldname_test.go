package formats

import (
	"reflect"
	"testing"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// What stackcollapse-perf.pl --all of FlameGraph printed for "NAME+0x1 (DSO)"
// in a thread called prog, and where it differs, in one called java.
func TestFoldNamesAsStackcollapse(t *testing.T) {
	for _, c := range []struct {
		name, dso  string
		prog, java []string
	}{
		{"main", "/bin/prog", []string{"main"}, nil},
		{"[unknown]", "/usr/lib/libfoo.so.1", []string{"[libfoo.so.1]"}, nil},
		{"[unknown]", "[unknown]", []string{"[unknown]"}, nil},
		{"[unknown]", "[kernel.kallsyms]", []string{"[[kernel.kallsyms]]_[k]"}, nil},
		{"do_syscall_64", "[kernel.kallsyms]", []string{"do_syscall_64_[k]"}, nil},
		{"ext4_readdir", "[ext4]", []string{"ext4_readdir_[k]"}, nil},
		{"tcp_sendmsg", "/lib/modules/6.1.0/build/vmlinux", []string{"tcp_sendmsg_[k]"}, nil},
		{"__vdso_gettimeofday", "[vdso]", []string{"__vdso_gettimeofday_[k]"}, nil},
		{"[unknown]", "[vdso]", []string{"[[vdso]]_[k]"}, nil},
		{"bpf_prog_6deef7357e7b4530", "bpf_prog_6deef7357e7b4530", []string{"bpf_prog_6deef7357e7b4530"}, nil},
		{"Lorg/mozilla/Foo;.call(Lorg/X;)V", "/tmp/perf-12.map", []string{"Lorg/mozilla/Foo:.call_[j]"}, []string{"org/mozilla/Foo:.call_[j]"}},
		{"[unknown]", "/tmp/perf-12.map", []string{"[perf-12.map]_[j]"}, nil},
		{"already_[j]", "/tmp/perf-12.map", []string{"already_[j]"}, nil},
		{`RegExp:[&<>"']`, "/tmp/perf-7539.map", []string{"RegExp:[&<>]_[j]"}, nil},
		{"net/http.(*Client).Do", "/bin/goprog", []string{"net/http.(*Client).Do"}, nil},
		{"main.main.func1", "/bin/goprog", []string{"main.main.func1"}, nil},
		{"std::function<void (int)>::operator()", "/bin/cpp", []string{"std::function<void "}, nil},
		{"ns::(anonymous namespace)::f(int)", "/bin/cpp", []string{"ns::(anonymous namespace)::f"}, nil},
		{"(anonymous namespace)::g", "/bin/cpp", nil, nil},
		{"Ptr::operator->", "/bin/cpp", []string{"Ptr::operator"}, nil},
		{"Ptr::operator->*", "/bin/cpp", []string{"Ptr::operator", "*_[i]"}, nil},
		{"a->b->c", "/bin/cpp", []string{"a", "b_[i]", "c_[i]"}, nil},
		{"a->b_[i]", "[kernel.kallsyms]", []string{"a_[k]", "b_[i]"}, nil},
		{"<fn() -> u8 as core::ops::FnOnce>::call", "/bin/rust", []string{"<fn", " u8 as core::ops::FnOnce>::call_[i]"}, nil},
		{"operator new", "/usr/lib/libstdc++.so.6", []string{"operator new"}, nil},
	} {
		if c.java == nil {
			c.java = c.prog
		}
		for java, want := range map[bool][]string{false: c.prog, true: c.java} {
			got := foldNames(c.name, c.dso, java)
			if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("%s (%s), java %v: %q, want %q", c.name, c.dso, java, got, want)
			}
		}
	}
}

func TestDSONames(t *testing.T) {
	for k, want := range map[image.Key]string{
		{Kind: image.File, Path: "/usr/bin/ls"}:                                 "/usr/bin/ls",
		{Kind: image.File, Path: "/tmp/x (deleted)"}:                            "/tmp/x",
		{Kind: image.File}:                                                      "[unknown]",
		{Kind: image.Unknown}:                                                   "[unknown]",
		{Kind: image.JIT, Path: "//anon", PID: 77}:                              "/tmp/perf-77.map",
		{Kind: image.Kernel, Path: "[kernel.kallsyms]"}:                         "[kernel.kallsyms]",
		{Kind: image.Module, Path: "[ext4]"}:                                    "[ext4]",
		{Kind: image.Module, Path: "/lib/modules/6.1/kernel/net/nf-conn.ko.xz"}: "[nf_conn]",
		{Kind: image.VDSO, Path: "[vdso]"}:                                      "[vdso]",
		{Kind: image.BPF, Path: "bpf_prog_6deef7357e7b4530_sd_devices"}:         "bpf_prog_6deef7357e7b4530_sd_devices",
	} {
		if got := dsoName(&image.Image{Key: k}); got != want {
			t.Errorf("%v: %q, want %q", k, got, want)
		}
	}
}

func TestFoldComm(t *testing.T) {
	for l, want := range map[graph.Label]string{
		{Comm: "V8 Worker Thread"}:    "V8_Worker_Thread",
		{Comm: "a", PID: 3}:           "a-3",
		{Comm: "a b", PID: 3, TID: 4}: "a_b-3/4",
		{Comm: "two\nlines"}:          "two_lines",
		{Comm: ":1234"}:               ":1234",
	} {
		if got := foldComm(l); got != want {
			t.Errorf("%v: %q, want %q", l, got, want)
		}
	}
}
