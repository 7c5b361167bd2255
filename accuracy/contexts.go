package accuracy

import (
	"fmt"
	"path"
)

// contextKey is one step of a calling context: the function entered from call
// site Site of the context Parent. Function-level contexts leave Site 0.
type contextKey struct {
	Parent Context
	Func   string
	Site   uint64
}

// contextTable numbers contexts. Profiles that are compared share one, so that
// equal contexts have equal numbers without ever spelling whole paths.
type contextTable map[contextKey]Context

const noContext Context = -1

func (t contextTable) intern(k contextKey) Context {
	c, ok := t[k]
	if !ok {
		c = Context(len(t))
		t[k] = c
	}
	return c
}

// cctNode is one line of a calling-context tree in jsonl.
type cctNode struct {
	ID         int64   `json:"id"`
	Parent     int64   `json:"parent"`
	Module     string  `json:"module"`
	Offset     uint64  `json:"offset"`
	SiteOffset uint64  `json:"site_offset"`
	Function   string  `json:"function"`
	Calls      float64 `json:"calls"`
}

// cctReader turns the nodes of one file, parents first, into contexts.
type cctReader struct {
	table      contextTable
	site, fn   map[int64]Context // node id -> context of either kind
	siteW, fnW Weights[Context]
}

func newCCTReader(t contextTable) *cctReader {
	return &cctReader{t, map[int64]Context{}, map[int64]Context{}, Weights[Context]{}, Weights[Context]{}}
}

func (r *cctReader) add(n cctNode) error {
	sp, fp := noContext, noContext
	if n.Parent != -1 {
		var ok bool
		if sp, ok = r.site[n.Parent]; !ok {
			return fmt.Errorf("node %d comes before its parent %d", n.ID, n.Parent)
		}
		fp = r.fn[n.Parent]
	}
	module := path.Base(n.Module)
	f := newFunc(module, n.Function, n.Offset)
	byOffset := fmt.Sprintf("%s+%#x", module, n.Offset)
	s := r.table.intern(contextKey{sp, byOffset, n.SiteOffset})
	g := r.table.intern(contextKey{fp, f.Module + "\x00" + f.Name, 0})
	r.site[n.ID], r.fn[n.ID] = s, g
	r.siteW[s] += n.Calls
	r.fnW[g] += n.Calls
	return nil
}

func newFunc(module, name string, offset uint64) Func {
	if name == "" {
		name = fmt.Sprintf("%#x", offset)
	}
	return Func{module, name}
}
