package image

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestDemangleEqualsCxxfilt compares with binutils' demangler, which is the
// one perf has, over every name of a C++ program.
func TestDemangleEqualsCxxfilt(t *testing.T) {
	path := compile(t, "names.cc")
	all, _ := nm(t, path)
	lib, _ := nm(t, "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "-D")
	var names []string
	for _, y := range append(all, lib...) {
		names = append(names, y.name)
	}
	cmd := exec.Command("c++filt", "-p", "-i")
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	s := testStore(t, Options{})
	mangled, differ := 0, 0
	for i, want := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if want != names[i] {
			mangled++
		}
		if got := s.demangle(names[i]); got != want {
			if differ++; differ < 10 {
				t.Logf("%s: %s, c++filt says %s", names[i], got, want)
			}
		}
	}
	t.Logf("%d of %d mangled names differ", differ, mangled)
	if mangled < 1000 || differ*1000 > mangled {
		t.Errorf("%d of %d names differ from c++filt", differ, mangled)
	}
}

func TestDemangleRust(t *testing.T) {
	s := testStore(t, Options{})
	for name, want := range map[string]string{
		"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE":                        "core::fmt::Write::write_fmt",
		"_ZN4core9core_arch3x8616_mm_shuffle_epi817h0123456789abcdefE":            "core::core_arch::x86::_mm_shuffle_epi8",
		"_ZN5hyper2rt5Sleep9__type_id17h0123456789abcdefE.llvm.1234567":           "hyper::rt::Sleep::__type_id",
		"_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE": "<&T as core::fmt::Debug>::fmt",
		"_RNvNtCsjrHSEGnQ3l9_3std2rt19lang_start_internal":                        "std::rt::lang_start_internal",
		"main": "main",
		"_ZN":  "_ZN",
	} {
		if got := s.demangle(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := testStore(t, Options{NoDemangle: true}).demangle("_ZN1a1bEv"); got != "_ZN1a1bEv" {
		t.Errorf("NoDemangle: %s", got)
	}
}

func TestNameForms(t *testing.T) {
	const (
		clone = "_ZL4workP3BoxIlElll.constprop.0.isra.0"
		rust  = "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.99"
	)
	for _, c := range []struct {
		opt        Options
		name, want string
	}{
		{Options{}, clone, "work"},
		{Options{Names: FullNames}, clone, "work(Box<long>*, long, long, long) [clone .constprop.0] [clone .isra.0]"},
		{Options{Names: FullNames, MergeClones: true}, clone, "work(Box<long>*, long, long, long)"},
		{Options{Names: ShortNames}, "_ZN3BoxIlE3getIsEET_v.cold", "Box::get"},
		{Options{}, "_ZN3BoxIlE3getIsEET_v.cold", "Box<long>::get<short>"},
		{Options{}, rust, "core::fmt::Write::write_fmt"},
		{Options{Names: FullNames, MergeClones: true}, rust, "core::fmt::Write::write_fmt::h0123456789abcdef"},
		{Options{}, "f.part.0.cold", "f.part.0.cold"},
		{Options{MergeClones: true}, "f.part.0.cold", "f"},
		{Options{MergeClones: true}, "f.llvm.123456789", "f"},
		{Options{MergeClones: true}, "f.constprop.12@plt", "f@plt"},
		{Options{MergeClones: true}, "main.init.0", "main.init.0"},
		{Options{MergeClones: true}, "counter.1", "counter.1"},
		{Options{MergeClones: true}, ".cold", ".cold"},
		{Options{MergeClones: true, NoDemangle: true}, "_Z1fi.cold", "_Z1fi"},
	} {
		if got := testStore(t, c.opt).demangle(c.name); got != c.want {
			t.Errorf("%+v %s: %s, want %s", c.opt, c.name, got, c.want)
		}
	}
}

// TestDemangleHostile gives names that unfold without end, or are deep.
func TestDemangleHostile(t *testing.T) {
	s := testStore(t, Options{})
	unfold := "_Z1fI" + strings.Repeat("St4pairI", 20) + "i"
	for i := range 60 {
		unfold += "S" + string("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i%36]) + "_S_E"
	}
	start := time.Now()
	for _, name := range []string{
		unfold, "_Z1f" + strings.Repeat("P", 8000) + "i", "_Z" + strings.Repeat("N", 8000), "_R" + strings.Repeat("NC", 4000),
		"_ZN" + strings.Repeat("1a", 100_000) + "E",
	} {
		if got := s.demangle(name); len(got) > 1<<(maxDemangled+1) && got != name {
			t.Errorf("a name of %d bytes became one of %d", len(name), len(got))
		}
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}
