package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestNormalize(t *testing.T) {
	var freq, out string
	var all, graph bool
	var z int
	s := &flagSet{}
	s.stringVar(&freq, "freq", "F", "", "`HZ`")
	s.stringVar(&out, "output", "o", "", "`FILE`")
	s.boolVar(&all, "all-cpus", "a", "")
	s.boolVar(&graph, "callchains", "g", "")
	s.intVar(&z, "compression-level", "z", 0, "")
	s.lookup("compression-level").optional = "1"
	for _, c := range []struct {
		end       bool
		in, want  string
		wantError string
	}{
		{in: "perf.data -F 99", want: "--freq=99 -- perf.data"},
		{in: "-F99 -ag x y", want: "--freq=99 --all-cpus=true --callchains=true -- x y"},
		{in: "-agF99 -", want: "--all-cpus=true --callchains=true --freq=99 -- -"},
		{in: "--output=- a -- -g", want: "--output=- -- a -g"},
		{in: "-o - -z", want: "--output=- --compression-level=1 --"},
		{in: "-z=5 --compression-level=3 7", want: "--compression-level=5 --compression-level=3 -- 7"},
		{end: true, in: "-g ./app -F 7 -- x", want: "--callchains=true -- ./app -F 7 -- x"},
		{end: true, in: "-g -- -a", want: "--callchains=true -- -a"},
		{in: "-F", wantError: "flag needs a value: -F"},
		{in: "--frob", wantError: "unknown flag: --frob"},
		{in: "-gx", wantError: "unknown flag: -x in -gx"},
		{in: "-h", wantError: errHelp.Error()},
	} {
		s.argsEndFlags = c.end
		got, err := s.normalize(strings.Fields(c.in))
		if c.wantError != "" {
			if err == nil || err.Error() != c.wantError {
				t.Errorf("%q: error %v, want %q", c.in, err, c.wantError)
			}
			continue
		}
		if err != nil || !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q: %q, %v; want %q", c.in, got, err, c.want)
		}
	}
}
