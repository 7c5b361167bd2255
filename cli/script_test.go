package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/record"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if record.IsHelper() {
		os.Exit(record.Helper())
	}
	testscript.Main(m, map[string]func(){
		"perfcorrect": func() { os.Exit(Main(os.Args[1:], System())) },
	})
}

// recorded is the recording scripts and documents use: 1,000 calls from dense,
// 1,000 from sparse (testdata/README.md).
const recorded = "../testdata/demo/recorded"

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			dir, err := filepath.Abs(recorded)
			if err != nil {
				return err
			}
			env.Setenv("RECORDED", dir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"truncate": truncate,
		},
	})
}

// exits STATUS COMMAND... runs a command and compares its exit status, which
// exec only tells zero from others.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// truncate FILE BYTES cuts a file.
func truncate(ts *testscript.TestScript, neg bool, args []string) {
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}

// TestManPageFlags holds the man page to the flags there are.
func TestManPageFlags(t *testing.T) {
	page, err := os.ReadFile("../man/perfcorrect.1")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), `\-`, "-")
	for _, c := range completables() {
		section, ok := manSection(text, c.name)
		if !ok {
			t.Errorf("no section on %s", c.name)
			continue
		}
		known := map[string]bool{}
		for _, f := range c.flags {
			known["--"+f.name] = true
			if f.name != "quiet" && !strings.Contains(section, "--"+f.name) {
				t.Errorf("%s: flag --%s is not described", c.name, f.name)
			}
			for _, v := range f.values {
				if !strings.Contains(section, v) {
					t.Errorf("%s: value %s of --%s is not described", c.name, v, f.name)
				}
			}
		}
		for _, word := range strings.FieldsFunc(section, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }) {
			if strings.HasPrefix(word, "--") && len(word) > 2 && !known[word] && !perfFlags[word] {
				t.Errorf("%s: describes %s, which is no flag", c.name, word)
			}
		}
	}
}

// perfFlags are flags of perf and valgrind that the page speaks of.
var perfFlags = map[string]bool{"--tool": true, "--dump-instr": true, "--threads": true, "--all": true, "--buildid-all": true}

// manSection is what follows ".SS perfcorrect NAME".
func manSection(page, name string) (string, bool) {
	_, rest, ok := strings.Cut(page, ".SS perfcorrect "+name+"\n")
	if !ok {
		return "", false
	}
	for _, end := range []string{"\n.SS ", "\n.SH "} {
		rest, _, _ = strings.Cut(rest, end)
	}
	return rest, true
}
