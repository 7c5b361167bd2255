package formats

import (
	"bufio"
	"encoding/json"
	"io"
	"math"

	"github.com/perfcorrect/perfcorrect/image"
)

// edgeLine is a line of a call graph in JSON lines. Offsets are file offsets
// (for code without a file what image.Kind says); Caller and Callee are
// demangled names, empty if not known; Stderr is null if not known.
type edgeLine struct {
	SiteModule   string   `json:"site_module"`
	SiteOffset   uint64   `json:"site_offset"`
	CalleeModule string   `json:"callee_module"`
	CalleeOffset uint64   `json:"callee_offset"`
	Caller       string   `json:"caller"`
	Callee       string   `json:"callee"`
	Samples      int64    `json:"samples"`
	Calls        float64  `json:"calls"`
	Stderr       *float64 `json:"stderr"`
}

// writeDCGJSONL writes one object a line for each edge.
func writeDCGJSONL(w io.Writer, p *Profile) error {
	out := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for e, v := range p.DCG.All() {
		line := edgeLine{
			SiteModule: dsoName(e.Site.Image), SiteOffset: e.Site.Offset,
			CalleeModule: dsoName(e.Callee.Image), CalleeOffset: e.Callee.Offset,
			Caller: p.name(e.Site), Callee: p.name(e.Callee),
			Samples: v.Samples, Calls: v.Calls,
		}
		if !math.IsNaN(v.Stderr) && !math.IsInf(v.Stderr, 0) {
			line.Stderr = &v.Stderr
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// name is that of the function at a; "" if not known.
func (p *Profile) name(a image.Addr) string {
	f := p.Store.Function(p.Store.Loc(a))
	switch {
	case f == nil:
		return ""
	case f.Name != "":
		return f.Name
	}
	return f.System
}
