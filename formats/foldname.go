package formats

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// foldComm writes a thread's name as the first frame of a folded line, with
// the numbers it is labelled by as with --pid and --tid. A line feed, which
// stackcollapse-perf.pl would take for the end of a line, is replaced too.
func foldComm(l graph.Label) string {
	s := strings.NewReplacer(" ", "_", "\n", "_").Replace(l.Comm)
	switch {
	case l.TID != 0:
		return s + "-" + strconv.Itoa(int(l.PID)) + "/" + strconv.Itoa(int(l.TID))
	case l.PID != 0:
		return s + "-" + strconv.Itoa(int(l.PID))
	}
	return s
}

// A name like net/http.(*Client).Do.
var goMethod = regexp.MustCompile(`\.\(.*\)\.`)

const (
	anonymous = "anonymous namespace)"
	unknown   = "[unknown]"
)

// foldNames returns the frames that stackcollapse-perf.pl --all makes of a
// frame which perf script prints as symbol name and object dso. It is one,
// except that names with "->" in them are split, for perf once printed inlined
// functions that way, and names beginning with "(" give none, so that the
// sample counts for the caller (C++ functions in a global anonymous namespace
// are among them; pprof output has them all). java says that the thread's name
// begins with it.
func foldNames(name, dso string, java bool) []string {
	if strings.HasPrefix(name, "(") {
		return nil
	}
	parts := strings.Split(name, "->")
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1] // as Perl's split
	}
	for i, p := range parts {
		if p == unknown && dso != unknown {
			p = "[" + dso[strings.LastIndexByte(dso, '/')+1:] + "]"
		}
		p = tidy(p)
		if java && strings.Contains(p, "/") {
			p = strings.TrimPrefix(p, "L")
		}
		switch {
		case i > 0:
			if !strings.Contains(p, "_[i]") {
				p += "_[i]"
			}
		case isKernelDSO(dso):
			p += "_[k]"
		case isPerfMap(dso):
			if !strings.Contains(p, "_[j]") {
				p += "_[j]"
			}
		}
		parts[i] = p
	}
	return parts
}

// tidy cleans a name up: no separator of frames, no parameters, no quotes.
func tidy(s string) string {
	s = strings.ReplaceAll(s, ";", ":")
	if strings.Contains(s, "(") && !goMethod.MatchString(s) {
		for i := 0; i < len(s); i++ {
			if s[i] == '(' && !strings.HasPrefix(s[i+1:], anonymous) {
				s = s[:i]
				break
			}
		}
	}
	if strings.ContainsAny(s, "\"'\n") {
		s = strings.NewReplacer(`"`, "", "'", "", "\n", " ").Replace(s)
	}
	return s
}

func isKernelDSO(dso string) bool {
	return (strings.HasPrefix(dso, "[") || strings.HasSuffix(dso, "vmlinux")) && !strings.Contains(dso, "unknown")
}

var perfMap = regexp.MustCompile(`/tmp/perf-\d+\.map`)

func isPerfMap(dso string) bool {
	return strings.HasPrefix(dso, "/tmp/") && perfMap.MatchString(dso)
}

// dsoName is the name perf script prints for an image. That a file is deleted,
// which stackcollapse-perf.pl takes for part of the symbol, is left out.
func dsoName(im *image.Image) string {
	switch im.Kind {
	case image.Unknown:
		return unknown
	case image.JIT: // util/map.c, map__new
		if name := im.Name(); !strings.HasPrefix(name, "perf-") {
			return name
		}
		return "/tmp/perf-" + strconv.Itoa(int(im.PID)) + ".map"
	case image.Module: // util/dso.c, __kmod_path__parse
		if strings.HasPrefix(im.Path, "[") {
			return im.Path
		}
		base, _, _ := strings.Cut(path.Base(im.Path), ".ko")
		return "[" + strings.ReplaceAll(base, "-", "_") + "]"
	}
	if im.Path == "" {
		return unknown
	}
	return strings.TrimSuffix(im.Path, " (deleted)")
}
