package accuracy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
)

// jsonLine has the keys of every kind of line perfcorrect writes as JSON
// lines: call edges, calling-context tree nodes, branches and paths. Which
// kind it is shows in the keys that are there.
type jsonLine struct {
	SiteModule   *string `json:"site_module"`
	SiteOffset   uint64  `json:"site_offset"`
	CalleeModule string  `json:"callee_module"`
	CalleeOffset uint64  `json:"callee_offset"`
	Caller       string  `json:"caller"`
	Callee       string  `json:"callee"`

	ID       *int64 `json:"id"`
	Parent   int64  `json:"parent"`
	Module   string `json:"module"`
	Offset   uint64 `json:"offset"`
	Function string `json:"function"`

	Taken    *float64 `json:"taken"`
	NotTaken float64  `json:"not_taken"`

	Path     []uint64 `json:"path"`
	Branches int      `json:"branches"`

	Calls float64 `json:"calls"`
	Count float64 `json:"count"`
}

// jsonl reads JSON lines into p. Kinds may be mixed.
func (r *Reader) jsonl(p *Profile, in io.Reader) error {
	cct := newCCTReader(r.contexts)
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 16<<20)
	for n := 1; sc.Scan(); n++ {
		if len(sc.Bytes()) == 0 {
			continue
		}
		if err := addLine(p, cct, sc.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", p.Name, n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	if len(cct.site) > 0 {
		p.Contexts, p.FuncContexts = cct.siteW, cct.fnW
	}
	return nil
}

func addLine(p *Profile, cct *cctReader, b []byte) error {
	var l jsonLine
	if err := json.Unmarshal(b, &l); err != nil {
		return err
	}
	switch {
	case l.SiteModule != nil:
		p.addCall(Call{*l.SiteModule, l.SiteOffset, l.CalleeModule, l.CalleeOffset}, l.Caller, l.Callee, l.Calls)
	case l.ID != nil:
		return cct.add(cctNode{*l.ID, l.Parent, l.Module, l.Offset, l.SiteOffset, l.Function, l.Calls})
	case l.Taken != nil:
		p.addBranch(BranchSite{path.Base(l.Module), l.Offset}, Branch{*l.Taken, l.NotTaken})
	case l.Path != nil:
		p.addPath(l)
	default:
		return fmt.Errorf("a line that is no call edge, context, branch or path")
	}
	return nil
}

func (p *Profile) addBranch(s BranchSite, b Branch) {
	if p.Branches == nil {
		p.Branches = map[BranchSite]Branch{}
	}
	o := p.Branches[s]
	p.Branches[s] = Branch{o.Taken + b.Taken, o.NotTaken + b.NotTaken}
}

// addPath keys a path by its module and the file offsets of its blocks.
func (p *Profile) addPath(l jsonLine) {
	if p.Paths == nil {
		p.Paths = map[string]Path{}
	}
	var key strings.Builder
	key.WriteString(path.Base(l.Module))
	for _, o := range l.Path {
		fmt.Fprintf(&key, " %x", o)
	}
	o := p.Paths[key.String()]
	p.Paths[key.String()] = Path{o.Freq + l.Count, l.Branches}
}
