package vpmu

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/image"
)

// One line each of the truth files. Modules are paths, offsets file offsets
// (addresses for code that is in no file, module "//anon").
type (
	// EdgeLine is a line of dcg.jsonl, the format of convert --graph dcg.
	EdgeLine struct {
		SiteModule   string  `json:"site_module"`
		SiteOffset   uint64  `json:"site_offset"`
		CalleeModule string  `json:"callee_module"`
		CalleeOffset uint64  `json:"callee_offset"`
		Caller       string  `json:"caller"`
		Callee       string  `json:"callee"`
		Samples      int64   `json:"samples"`
		Calls        float64 `json:"calls"`
		Stderr       float64 `json:"stderr"`
	}
	// ContextLine is a line of cct.jsonl: parents come first, a root has parent -1.
	ContextLine struct {
		ID         int    `json:"id"`
		Parent     int    `json:"parent"`
		Module     string `json:"module"`
		Offset     uint64 `json:"offset"`
		SiteOffset uint64 `json:"site_offset"`
		Function   string `json:"function"`
		Samples    int64  `json:"samples"`
		Calls      uint64 `json:"calls"`
	}
	// BranchLine is a line of edges.jsonl: one conditional branch.
	BranchLine struct {
		Module            string `json:"module"`
		Offset            uint64 `json:"offset"`
		TargetOffset      uint64 `json:"target_offset"`
		FallthroughOffset uint64 `json:"fallthrough_offset"`
		Taken             uint64 `json:"taken"`
		NotTaken          uint64 `json:"not_taken"`
		Function          string `json:"function"`
	}
	// PathLine is a line of paths.jsonl: an acyclic path, spelled by where it
	// starts and where each branch executed on it went.
	PathLine struct {
		Module         string   `json:"module"`
		FunctionOffset uint64   `json:"function_offset"`
		Path           []uint64 `json:"path"`
		Count          uint64   `json:"count"`
		Branches       int      `json:"branches"` // conditional and indirect ones on it
		Function       string   `json:"function"`
	}
)

// namer finds the function a place is in.
type namer struct {
	store  *image.Store
	images []*image.Image // by number in the stream; nil for code in no file
	truth  *truthData
	known  map[uint32]*image.Function
}

func newNamer(t *truthData) *namer {
	n := &namer{store: image.NewStore(image.Options{}), truth: t, known: map[uint32]*image.Function{}}
	execs := new(execMaps)
	for _, p := range t.images {
		if strings.HasPrefix(p, "//") {
			n.images = append(n.images, nil)
			continue
		}
		n.images = append(n.images, n.store.Image(image.Key{Path: p, BuildID: hex.EncodeToString(execs.file(p).buildID)}))
	}
	return n
}

func (n *namer) module(p uint32) string { return n.truth.images[n.truth.places[p].image] }
func (n *namer) offset(p uint32) uint64 { return n.truth.places[p].offset }

// function is nil if nothing is known to cover the place.
func (n *namer) function(p uint32) *image.Function {
	f, ok := n.known[p]
	if !ok {
		pl := n.truth.places[p]
		if im := n.images[pl.image]; im != nil {
			f = n.store.Function(n.store.Loc(image.Addr{Image: im, Offset: pl.offset}))
		}
		n.known[p] = f
	}
	return f
}

// entry is the entry of the function at p, if known, else p itself.
func (n *namer) entry(p uint32) uint64 {
	if f := n.function(p); f != nil {
		return f.Entry
	}
	return n.offset(p)
}

func (n *namer) name(p uint32) string {
	if f := n.function(p); f != nil {
		return f.Name
	}
	return ""
}

func writeTruth(c *Config, t *truthData, res *Result) error {
	if err := os.MkdirAll(c.TruthDir, 0o777); err != nil {
		return err
	}
	n := newNamer(t)
	if err := writeLines(filepath.Join(c.TruthDir, "dcg.jsonl"), dcgLines(t, n)); err != nil {
		return err
	}
	if err := writeLines(filepath.Join(c.TruthDir, "edges.jsonl"), branchLines(t, n)); err != nil {
		return err
	}
	if !c.NoCCT {
		if err := writeLines(filepath.Join(c.TruthDir, "cct.jsonl"), contextLines(t, n)); err != nil {
			return err
		}
	}
	if c.Paths {
		if err := writeLines(filepath.Join(c.TruthDir, "paths.jsonl"), pathLines(t, n)); err != nil {
			return err
		}
	}
	return writeTotals(filepath.Join(c.TruthDir, "totals.json"), c, res)
}

// Totals is totals.json: what the whole run did.
type Totals struct {
	Program      []string
	ExitCode     int
	Threads      int
	Instructions uint64
	Calls        uint64
	Branches     uint64
	Odd          map[string]uint64 // what does not fit the model, README.md
}

func writeTotals(path string, c *Config, res *Result) error {
	b, err := json.MarshalIndent(Totals{
		c.Program[1:], res.ExitCode, len(res.Threads), res.Total.Instructions, res.Total.Calls, res.Total.Branches, res.Odd,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o666)
}

func writeLines[T any](path string, lines []T) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriterSize(f, 1<<18)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range lines {
		if err := enc.Encode(&lines[i]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// dcgLines merges edges whose callees are the same function.
func dcgLines(t *truthData, n *namer) []EdgeLine {
	at := map[EdgeLine]int{}
	var lines []EdgeLine
	for _, e := range t.edges {
		l := EdgeLine{
			SiteModule: n.module(e.site), SiteOffset: n.offset(e.site), CalleeModule: n.module(e.callee), CalleeOffset: n.entry(e.callee),
			Caller: n.name(e.site), Callee: n.name(e.callee),
		}
		i, ok := at[l]
		if !ok {
			i = len(lines)
			at[l] = i
			lines = append(lines, l)
		}
		lines[i].Calls += float64(e.calls)
	}
	slices.SortFunc(lines, func(a, b EdgeLine) int {
		return cmp.Or(cmp.Compare(a.SiteModule, b.SiteModule), cmp.Compare(a.SiteOffset, b.SiteOffset),
			cmp.Compare(a.CalleeModule, b.CalleeModule), cmp.Compare(a.CalleeOffset, b.CalleeOffset))
	})
	return lines
}

func branchLines(t *truthData, n *namer) []BranchLine {
	var lines []BranchLine
	for _, c := range t.conds {
		if c.taken+c.notTaken == 0 {
			continue // translated, never executed
		}
		lines = append(lines, BranchLine{
			n.module(c.place), n.offset(c.place), n.offset(c.target), n.offset(c.fall), c.taken, c.notTaken, n.name(c.place),
		})
	}
	slices.SortFunc(lines, func(a, b BranchLine) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Offset, b.Offset))
	})
	return lines
}

// contextLines merges contexts that differ only in where a function was entered.
func contextLines(t *truthData, n *namer) []ContextLine {
	type key struct {
		parent int
		module string
		offset uint64
		site   uint32
	}
	ids := make([]int, len(t.cct))
	at := map[key]int{}
	var lines []ContextLine
	ids[0] = -1
	for i := 1; i < len(t.cct); i++ {
		c := t.cct[i]
		k := key{ids[c.parent], n.module(c.callee), n.entry(c.callee), c.site}
		id, ok := at[k]
		if !ok {
			id = len(lines)
			at[k] = id
			l := ContextLine{ID: id, Parent: k.parent, Module: k.module, Offset: k.offset, Function: n.name(c.callee)}
			if c.site != 0 {
				l.SiteOffset = n.offset(c.site)
			}
			lines = append(lines, l)
		}
		ids[i] = id
		lines[id].Calls += c.count
	}
	return lines
}
