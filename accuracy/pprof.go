package accuracy

import (
	"fmt"
	"io"
	"path"

	"github.com/google/pprof/profile"
)

// pprof reads what convert --format pprof writes. A dynamic call graph has two
// locations in every sample, callee entry and call instruction; a profile of
// stacks is counted by its leaf edges, which name functions only, and by its
// contexts.
func (r *Reader) pprof(p *Profile, in io.Reader) error {
	prof, err := profile.Parse(in)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	calls := -1
	for i, t := range prof.SampleType {
		if t.Type == "calls" {
			calls = i
		}
	}
	if calls < 0 {
		return fmt.Errorf("%s: no sample type calls/count; convert writes it", p.Name)
	}
	dcg := len(prof.SampleType) == 2
	for _, s := range prof.Sample {
		dcg = dcg && len(s.Location) == 2
	}
	if dcg {
		return readDCG(p, prof, calls)
	}
	r.readStacks(p, prof, calls)
	return nil
}

func readDCG(p *Profile, prof *profile.Profile, calls int) error {
	for _, s := range prof.Sample {
		callee, caller := s.Location[0], s.Location[1]
		if callee.Mapping == nil || caller.Mapping == nil {
			return fmt.Errorf("%s: a location without mapping", p.Name)
		}
		p.addCall(Call{
			caller.Mapping.File, fileOffset(caller), callee.Mapping.File, fileOffset(callee),
		}, funcName(caller), funcName(callee), float64(s.Value[calls]))
	}
	return nil
}

func fileOffset(l *profile.Location) uint64 {
	return l.Address - l.Mapping.Start + l.Mapping.Offset
}

// funcName is the function the code at l belongs to: the outermost, if others
// are inlined there.
func funcName(l *profile.Location) string {
	if n := len(l.Line); n > 0 && l.Line[n-1].Function != nil {
		return l.Line[n-1].Function.Name
	}
	return ""
}

// readStacks adds the leaf edge of every stack at function level, and every
// stack as a context with the calls into its leaf.
func (r *Reader) readStacks(p *Profile, prof *profile.Profile, calls int) {
	p.FuncContexts = Weights[Context]{}
	for _, s := range prof.Sample {
		v := float64(s.Value[calls])
		ctx := noContext
		for i := len(s.Location) - 1; i >= 0; i-- {
			f := locFunc(s.Location[i])
			ctx = r.contexts.intern(contextKey{ctx, f.Module + "\x00" + f.Name, 0})
		}
		if ctx != noContext {
			p.FuncContexts[ctx] += v
		}
		if len(s.Location) > 1 {
			p.addFuncCall(FuncCall{Caller: locFunc(s.Location[1]), Callee: locFunc(s.Location[0])}, v)
		}
	}
}

func locFunc(l *profile.Location) Func {
	if l.Mapping == nil {
		return newFunc("", funcName(l), l.Address)
	}
	return newFunc(path.Base(l.Mapping.File), funcName(l), fileOffset(l))
}
