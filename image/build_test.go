package image

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var (
	buildDir string
	built    = map[string]string{}
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "image-test")
	if err != nil {
		panic(err)
	}
	buildDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// compile builds a program of testdata, once for each set of options, and
// returns its path.
func compile(t testing.TB, source string, args ...string) string {
	t.Helper()
	key := strings.Join(append([]string{source}, args...), " ")
	if path, ok := built[key]; ok {
		return path
	}
	compiler := "gcc"
	if strings.HasSuffix(source, ".cc") {
		compiler = "g++"
	}
	out := filepath.Join(buildDir, fmt.Sprint(len(built)), strings.TrimSuffix(source, filepath.Ext(source)))
	src, err := filepath.Abs(filepath.Join("testdata", source))
	if err == nil {
		err = os.Mkdir(filepath.Dir(out), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	run(t, compiler, append([]string{"-O2", "-o", out, src}, args...)...)
	built[key] = out
	return out
}

// run runs a command that has to succeed and returns its output.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// testStore is a Store that finds nothing of the host's debug files but what
// the test puts there.
func testStore(t testing.TB, opt Options) *Store {
	t.Helper()
	if opt.BuildIDDir == "" {
		opt.BuildIDDir = t.TempDir()
	}
	if opt.DebugDirs == nil {
		opt.DebugDirs = []string{t.TempDir()}
	}
	if opt.Debuginfod == "" {
		opt.Debuginfod = "none"
	}
	s := NewStore(opt)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// buildIDOf is the build ID readelf shows.
func buildIDOf(t testing.TB, path string) string {
	t.Helper()
	_, id, ok := strings.Cut(run(t, "readelf", "-n", path), "Build ID: ")
	if !ok {
		t.Fatalf("readelf -n %s shows no build ID", path)
	}
	id, _, _ = strings.Cut(id, "\n")
	return strings.TrimSpace(id)
}

func install(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
