package image

import (
	"bytes"
	"io"
	"os"
	"strings"
)

const maxVDSO = 64 << 10

// loadVDSO finds the vdso in perf's cache, else takes our own if it has the
// recorded build ID (or none was recorded on this host).
func (im *Image) loadVDSO() {
	s := im.store
	if e := im.openQuietly(s.cached(im.BuildID, "vdso"), im.BuildID); e != nil && im.BuildID != "" {
		im.file = e
		im.readSymbols()
		return
	}
	e := ownVDSO()
	if e == nil || !(im.BuildID != "" && sameBuildID(e.buildID, im.BuildID) || im.BuildID == "" && s.opt.SameHost) {
		im.problems = append(im.problems, Problem{Image: im, Path: "[vdso]", Kind: Missing,
			What: "no copy with build ID " + orNone(im.BuildID), Hint: "convert on the host and kernel of the recording"})
		return
	}
	im.file = e
	im.readSymbols()
}

// ownVDSO copies the vdso of this process out of its memory.
func ownVDSO() *elfFile {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			continue
		}
		bounds, _, _ := strings.Cut(line, " ")
		lo, hi, _ := strings.Cut(bounds, "-")
		start, ok1 := parseHex(lo)
		end, ok2 := parseHex(hi)
		if !ok1 || !ok2 || end <= start || end-start > maxVDSO {
			return nil
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil
		}
		defer mem.Close()
		b := make([]byte, end-start)
		if _, err := io.ReadFull(io.NewSectionReader(mem, int64(start), int64(end-start)), b); err != nil {
			return nil
		}
		e, err := newELF("[vdso]", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return nil
		}
		return e
	}
	return nil
}
