package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// debianSources fetches and unpacks Debian's source packages, with an apt
// configuration of its own: the machine's lists of packages and sources stay
// as they are.
type debianSources struct {
	dir string // apt/ and src/ go here
	log io.Writer
}

// etcAPT is where the machine's own configuration is.
const etcAPT = "/etc/apt"

// get returns the folder a source package was unpacked in, fetching it if it
// is not there.
func (s *debianSources) get(ctx context.Context, pkg string) (string, error) {
	dir := filepath.Join(s.dir, "src", pkg)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	apt := filepath.Join(s.dir, "apt")
	if err := s.configure(ctx, apt); err != nil {
		return "", err
	}
	fetch := filepath.Join(s.dir, "src", "fetch-"+pkg)
	if err := os.MkdirAll(fetch, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(fetch)
	fmt.Fprintf(s.log, "fetching Debian's source of %s\n", pkg)
	if err := s.apt(ctx, apt, fetch, "source", "-qq", "--only-source", pkg); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(fetch, "*", "debian"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("source of %s: %d folders in what apt-get unpacked, want one", pkg, len(found))
	}
	return dir, os.Rename(filepath.Dir(found[0]), dir)
}

// configure writes the private configuration and reads the lists of source
// packages, once.
func (s *debianSources) configure(ctx context.Context, apt string) error {
	done := filepath.Join(apt, "done")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	parts := filepath.Join(apt, "sources.list.d")
	for _, d := range []string{parts, filepath.Join(apt, "lists", "partial"), filepath.Join(apt, "archives", "partial")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	n := 0
	for _, pattern := range []string{"sources.list", "sources.list.d/*.sources", "sources.list.d/*.list"} {
		files, err := filepath.Glob(filepath.Join(etcAPT, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			text := sourceEntries(string(b), filepath.Ext(f) == ".sources")
			if !strings.Contains(text, "debian") { // only Debian's archives
				continue
			}
			n++
			if err := os.WriteFile(filepath.Join(parts, filepath.Base(f)), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	if n == 0 {
		return fmt.Errorf("no archive of Debian in %s: cannot fetch sources", etcAPT)
	}
	if err := s.apt(ctx, apt, apt, "update", "-qq"); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o644)
}

// sourceEntries turns entries for packages into entries for their sources,
// in either notation of sources.list(5).
func sourceEntries(text string, deb822 bool) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		switch {
		case deb822 && strings.HasPrefix(strings.ToLower(l), "types:"):
			lines[i] = "Types: deb-src"
		case !deb822 && (strings.HasPrefix(l, "deb ") || strings.HasPrefix(l, "deb\t")):
			lines[i] = "deb-src" + l[len("deb"):]
		case !deb822 && strings.HasPrefix(l, "deb-src"):
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

func (s *debianSources) apt(ctx context.Context, apt, dir string, args ...string) error {
	opts := []string{
		"-o", "Dir::Etc::sourcelist=/dev/null", "-o", "Dir::Etc::sourceparts=" + filepath.Join(apt, "sources.list.d"),
		"-o", "Dir::State::lists=" + filepath.Join(apt, "lists"), "-o", "Dir::Cache=" + apt,
		"-o", "APT::Sandbox::User=", // its user may not read a folder of ours
	}
	return runIn(ctx, dir, append(append([]string{"apt-get"}, opts...), args...))
}

// runIn runs a command and shows what it said only if it failed.
func runIn(ctx context.Context, dir string, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
