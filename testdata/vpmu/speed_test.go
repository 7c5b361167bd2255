package vpmu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSpeed prints how fast programs run under the virtual PMU, beside plain
// emulation; `make long` runs it.
func TestSpeed(t *testing.T) {
	if !*long {
		return
	}
	dir := t.TempDir()
	text := input(t, dir, 1_000_000)
	for _, c := range []crossCase{
		{"gzip", []string{"gzip", "-6", "-c"}, text},
		{"bc", []string{"bc", "-lq", file(t, dir, "pi.bc", "scale=700; a(1)*4\nhalt\n")}, ""},
		{"lua", []string{"lua5.4", file(t, dir, "fib.lua", "local function fib(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end\nprint(fib(30))\n")}, ""},
	} {
		plain := exec.Command("qemu-x86_64", append([]string{lookPath(t, c.args[0])}, c.args[1:]...)...)
		plain.Env = DefaultEnv
		if c.stdin != "" {
			f, err := os.Open(c.stdin)
			if err != nil {
				t.Fatal(err)
			}
			plain.Stdin = f
			defer f.Close()
		}
		if err := plain.Run(); err != nil {
			t.Fatal(err)
		}
		user := plain.ProcessState.UserTime()
		one := DefaultRecording()
		one.Output, one.Branch, one.Period = filepath.Join(dir, "one"), "any_call", 500_000
		twelve := make([]Recording, 0, 12)
		for i := range 12 {
			r := one
			r.Output, r.Sigma, r.Skid, r.Seed = filepath.Join(dir, "r"+string(rune('a'+i))), 0.7*float64(i%2), 3*(i/2%2), uint64(i/4)
			twelve = append(twelve, r)
		}
		for _, v := range []struct {
			name string
			conf Config
		}{
			{"counting only", Config{}},
			{"one recording, LBR any_call", Config{Recordings: []Recording{one}}},
			{"the same and truth", Config{Recordings: []Recording{one}, TruthDir: dir}},
			{"truth, paths, twelve recordings", Config{Recordings: twelve, TruthDir: dir, Paths: true}},
		} {
			v.conf.Program, v.conf.Stdin = c.args, c.stdin
			res := run(t, v.conf)
			t.Logf("%-5s %-32s %5.2f s user, %4.2f G instructions/s, %.1f x plain qemu (%.2f s)", c.name, v.name, res.User.Seconds(),
				float64(res.Total.Instructions)/1e9/res.User.Seconds(), res.User.Seconds()/user.Seconds(), user.Round(10*time.Millisecond).Seconds())
		}
	}
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(p)
}
