package image

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestDebuginfod strips a program and lets a server have the rest; without
// one named nothing is asked.
func TestDebuginfod(t *testing.T) {
	whole := compile(t, "inline.cc", "-g")
	id := buildIDOf(t, whole)
	stripped := filepath.Join(t.TempDir(), "program")
	run(t, "strip", "-o", stripped, whole)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		switch r.URL.Path {
		case "/buildid/" + id + "/debuginfo", "/buildid/" + id + "/executable":
			http.ServeFile(w, r, whole)
		case "/buildid/" + strings.Repeat("ee", 20) + "/executable":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	cache := t.TempDir()
	t.Setenv("DEBUGINFOD_CACHE_PATH", cache)

	ref := testStore(t, Options{})
	locs, _ := addresses(t, ref, ref.Image(Key{Path: whole}), 9)
	compare := func(k Key, urls string) {
		t.Helper()
		s := testStore(t, Options{Debuginfod: urls})
		for _, l := range locs {
			a := ref.Addr(l)
			got, want := s.Frames(s.Loc(Addr{Image: s.Image(k), Offset: a.Offset})), ref.Frames(l)
			if strings.Join(names(got), ";") != strings.Join(names(want), ";") {
				t.Fatalf("%#x: %v, want %v", a.Offset, names(got), names(want))
			}
		}
		if p := s.Problems(); len(p) > 0 {
			t.Error(p)
		}
	}
	compare(Key{Path: stripped}, server.URL)
	compare(Key{Path: "/gone/program", BuildID: id}, "ftp://nothing "+server.URL+"/")
	if n := len(asked); n != 2 {
		t.Errorf("asked %q", asked)
	}
	compare(Key{Path: stripped}, server.URL) // from the cache
	if len(asked) != 2 {
		t.Errorf("asked again: %q", asked)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, id, ".fetch*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	s := testStore(t, Options{Debuginfod: server.URL})
	for range 3 {
		if f := s.Function(s.Loc(Addr{Image: s.Image(Key{Path: "/gone/other", BuildID: strings.Repeat("ee", 20)}), Offset: 5})); f != nil {
			t.Error(f)
		}
	}
	if p := s.Problems(); len(p) == 0 || !strings.Contains(p[len(p)-1].What, "500") && !strings.Contains(p[0].What, "500") {
		t.Errorf("the server's error is not said: %v", p)
	}
	asked = nil
	t.Setenv("DEBUGINFOD_URLS", "")
	off := NewStore(Options{BuildIDDir: t.TempDir()})
	off.Function(off.Loc(Addr{Image: off.Image(Key{Path: stripped}), Offset: 0x1000}))
	off.Close()
	if asked != nil {
		t.Errorf("asked %q though no server was named", asked)
	}
}
