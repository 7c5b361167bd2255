package image

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// toolFrame is a function and position as a tool prints them.
type toolFrame struct{ name, at string }

// askTool gives addresses to addr2line or llvm-symbolizer and returns the
// inlined frames of each.
func askTool(t *testing.T, vaddrs []string, tool string, args ...string) (all [][]toolFrame) {
	t.Helper()
	cmd := exec.Command(tool, args...)
	cmd.Stdin = strings.NewReader(strings.Join(vaddrs, "\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	for i := 0; i < len(lines); {
		if strings.HasPrefix(lines[i], "0x") {
			all = append(all, nil)
			i++
			continue
		}
		at, _, _ := strings.Cut(lines[i+1], " (discriminator")
		file, line, _ := strings.Cut(at, ":")
		last := len(all) - 1
		all[last] = append(all[last], toolFrame{lines[i], filepath.Clean(file) + ":" + line})
		i += 2
	}
	if len(all) != len(vaddrs) {
		t.Fatalf("%s answers %d of %d", tool, len(all), len(vaddrs))
	}
	return all
}

func binutils(t *testing.T, path string, vaddrs []string) [][]toolFrame {
	return askTool(t, vaddrs, "addr2line", "-a", "-f", "-i", "-e", path)
}

func llvm(t *testing.T, path string, vaddrs []string) [][]toolFrame {
	return askTool(t, vaddrs, "llvm-symbolizer", "-a", "-i", "--functions=linkage", "--no-demangle", "--output-style=GNU", "--obj="+path)
}

// TestFramesEqualTools compares the chains of inlined calls, with their names
// and lines, all over programs built in all the ways debug information is
// laid out. LLVM has to agree everywhere; binutils 2.40 now and then gives a
// line the wrong file or loses the innermost call, and does not find all types' units.
func TestFramesEqualTools(t *testing.T) {
	for _, c := range []struct {
		source, args string
		binutils     bool
	}{
		{"inline.cc", "-g -gdwarf-5", true}, {"inline.cc", "-gdwarf-4", true}, {"inline.cc", "-gdwarf-2", true},
		{"inline.cc", "-g -gz", false}, {"inline.cc", "-g -gz=zlib-gnu", false},
		{"inline.cc", "-g -flto -O3", false}, {"inline.cc", "-g -no-pie -ffunction-sections -Wl,--gc-sections", false},
		{"inline.cc", "-gdwarf-5 -fdebug-types-section", false}, {"inline.cc", "-gdwarf-4 -fdebug-types-section", false},
		{"names.cc", "-g", true}, {"calls.c", "-g", true},
	} {
		t.Run(c.source+" "+c.args, func(t *testing.T) {
			path := compile(t, c.source, strings.Fields(c.args)...)
			compareFrames(t, path, path, "LLVM", llvm, 0)
			if c.binutils {
				compareFrames(t, path, path, "binutils", binutils, 0.02)
			}
		})
	}
}

// compareFrames compares the frames of the program at path with what a tool
// says of reference, the same program.
func compareFrames(t *testing.T, path, reference, tool string, ask func(*testing.T, string, []string) [][]toolFrame, tolerance float64) {
	t.Helper()
	s := testStore(t, Options{})
	locs, vaddrs := addresses(t, s, s.Image(Key{Path: path}), 17)
	inlined, differ := 0, 0
	for i, want := range ask(t, reference, vaddrs) {
		if len(want) == 0 || want[0].name == "??" || strings.HasSuffix(want[len(want)-1].at, ":?") {
			continue
		}
		inlined += len(want) - 1
		if diff := frameDiff(s.Frames(locs[i]), want); diff != "" {
			if differ++; differ <= 5 {
				t.Logf("%s: %s, says %s", vaddrs[i], diff, tool)
			}
		}
	}
	t.Logf("%s: %d addresses, %d inlined frames, %d differ", tool, len(locs), inlined, differ)
	if float64(differ) > tolerance*float64(len(locs)) {
		t.Errorf("%d of %d addresses differ from %s", differ, len(locs), tool)
	}
	if inlined == 0 && strings.Contains(path, "inline") {
		t.Errorf("%s knows no inlined call", tool)
	}
	for _, p := range s.Problems() {
		t.Error(p)
	}
}

func frameDiff(got []Frame, want []toolFrame) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d frames %v, want %d %v", len(got), names(got), len(want), want)
	}
	for j, w := range want {
		g := got[j]
		at := fmt.Sprintf("%s:%d", filepath.Clean(g.File), g.Line)
		if strings.HasSuffix(w.at, ":?") || strings.HasSuffix(w.at, ":0") {
			at = w.at
		}
		// The outermost has the symbol's name: "main.cold". Of an inlined one
		// tools know the mangled name or the one without scope.
		if at != w.at || j+1 < len(want) && g.System != w.name {
			return fmt.Sprintf("frame %d is %s %s, want %s", j, g.System, at, w)
		}
	}
	return ""
}

func names(frames []Frame) (all []string) {
	for _, f := range frames {
		all = append(all, f.Name)
	}
	return all
}

// TestSplitFrames takes the debug information from split files, from a
// package of them, and from a file that dwz shares between programs; the
// reference is the same program with all in one file.
func TestSplitFrames(t *testing.T) {
	for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
		whole := compile(t, "inline.cc", version)
		split := compile(t, "inline.cc", version, "-gsplit-dwarf")
		t.Run("split"+version, func(t *testing.T) { compareFrames(t, split, whole, "LLVM", llvm, 0) })
		t.Run("package"+version, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "inline")
			install(t, split, path)
			pack := "dwp"
			if version == "-gdwarf-5" {
				pack = "llvm-dwp" // binutils 2.40 crashes
			}
			run(t, pack, "-e", split, "-o", path+".dwp")
			compareFrames(t, path, whole, "LLVM", llvm, 0)
		})
		t.Run("dwz"+version, func(t *testing.T) {
			dir := t.TempDir()
			a, b := filepath.Join(dir, "inline"), filepath.Join(dir, "other")
			install(t, whole, a)
			install(t, whole, b)
			run(t, "dwz", "-m", filepath.Join(dir, "common"), "-M", "common", a, b)
			compareFrames(t, a, whole, "LLVM", llvm, 0)
		})
	}
}

// TestScopes checks what perf does not print: the namespaces around functions
// without a mangled name.
func TestScopes(t *testing.T) {
	for _, args := range []string{"-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -fdebug-types-section"} {
		s := testStore(t, Options{})
		locs, _ := addresses(t, s, s.Image(Key{Path: compile(t, "inline.cc", strings.Fields(args)...)}), 1)
		found := false
		for _, l := range locs {
			for _, f := range s.Frames(l) {
				if f.System == "anon" {
					found = true
					if want := "ns::(anonymous namespace)::anon"; f.Name != want {
						t.Fatalf("%s, want %s", f.Name, want)
					}
				}
			}
		}
		if !found {
			t.Error("anon is not inlined anywhere")
		}
	}
}

// BenchmarkFrames finds the lines and inlined calls of addresses all over a
// program of about 1 MB of debug information, from opening it on.
func BenchmarkFrames(b *testing.B) {
	path := compile(b, "inline.cc", "-g", "-static")
	for b.Loop() {
		s := NewStore(Options{BuildIDDir: "none", DebugDirs: []string{}, Debuginfod: "none"})
		im := s.Image(Key{Path: path})
		im.load()
		for i := range im.symbols.all {
			s.Loc(Addr{Image: im, Offset: im.symbols.all[i].start + 5})
		}
		for l := range Loc(s.NumLocs()) {
			s.Frames(l)
		}
		s.Close()
	}
}
