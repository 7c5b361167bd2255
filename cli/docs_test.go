package cli

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentation runs every command that README.md and the man page show,
// in order, in a directory with the program they speak of. What README.md
// says they print must be what they print.
func TestDocumentation(t *testing.T) {
	for _, doc := range []struct {
		path string
		read func(string) []shown
	}{
		{"../README.md", readmeCommands},
		{"../man/perfcorrect.1", manCommands},
	} {
		t.Run(filepath.Base(doc.path), func(t *testing.T) {
			text, err := os.ReadFile(doc.path)
			if err != nil {
				t.Fatal(err)
			}
			commands := doc.read(string(text))
			if len(commands) < 5 {
				t.Fatalf("found %d commands", len(commands))
			}
			run := stage(t)
			for _, c := range commands {
				got, err := run(c.command)
				if err != nil {
					t.Errorf("$ %s\n%s%v", c.command, got, err)
				} else if c.output != "" && got != c.output {
					t.Errorf("$ %s\ngot\n%swant\n%s", c.command, got, c.output)
				}
			}
		})
	}
}

// shown is a command of a document, and what the document says it prints, ""
// if it does not say.
type shown struct{ command, output string }

// readmeCommands are the lines after "$ " in ```console blocks.
func readmeCommands(text string) []shown {
	var all []shown
	inside := false
	for line := range strings.Lines(text) {
		switch command, ok := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			inside = strings.TrimSpace(line) == "```console"
		case !inside:
		case ok:
			all = append(all, shown{command: strings.TrimSpace(command)})
		default:
			all[len(all)-1].output += line
		}
	}
	return all
}

// manCommands are the lines after "$ " between .EX and .EE.
func manCommands(text string) []shown {
	var all []shown
	inside := false
	for line := range strings.Lines(strings.ReplaceAll(text, `\-`, "-")) {
		switch command, ok := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, ".EX"), strings.HasPrefix(line, ".EE"):
			inside = strings.HasPrefix(line, ".EX")
		case inside && ok:
			all = append(all, shown{command: strings.TrimSpace(command)})
		}
	}
	return all
}

// stage makes the directory and returns a function that runs a shell command
// in it. perfcorrect, pprof and plain perf record run as they are. Commands
// that need a PMU or change the machine (probes, sysctl) do not: a perf that
// comes first in $PATH delivers the recording of testdata/demo for them, and
// a sudo runs its arguments.
func stage(t *testing.T) func(string) (string, error) {
	t.Helper()
	dir, bin, ids := t.TempDir(), t.TempDir(), t.TempDir()
	recordedDir, err := filepath.Abs(recorded)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(recordedDir, "tmp/perfcorrect-demo/call-density-bias")
	linkBuildID(t, ids, program)
	link(t, program, filepath.Join(dir, "call-density-bias"))
	perf, err := exec.LookPath("perf")
	if err != nil {
		t.Fatalf("%v: make test installs it", err)
	}
	script(t, bin, "sudo", `exec "$@"`)
	script(t, bin, "sysctl", `exit 0`)
	script(t, bin, "perf", fmt.Sprintf(`
case "$*" in
probe*) ;;
record*-e*) cp %s/call-density-bias.data perf.data ;;
*) exec %s "$@" ;;
esac`, recordedDir, perf))
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PERF_BUILDID_DIR="+ids)
	return func(command string) (string, error) {
		cmd := exec.Command("bash", "-c", "set -o pipefail; "+command)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// linkBuildID enters an ELF file in a build-ID cache, as perf lays it out.
func linkBuildID(t *testing.T, cache, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	noteSection, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	id := hex.EncodeToString(noteSection[16:]) // behind the note's header and "GNU\0"
	dir := filepath.Join(cache, ".build-id", id[:2], id[2:])
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	link(t, path, filepath.Join(dir, "elf"))
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func script(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
}
