package vpmu

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

var sharedWork = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "vpmu-test-") })

// workDir is one for all tests, so that the plugin is built once.
func workDir(t testing.TB) string {
	t.Helper()
	d, err := sharedWork()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMain(m *testing.M) {
	code := m.Run()
	if d, err := sharedWork(); err == nil {
		os.RemoveAll(filepath.Clean(d))
	}
	os.Exit(code)
}
