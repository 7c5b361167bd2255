package correct

import (
	"slices"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/image/x86"
)

// codeReader reads instructions of the program, each once. Offsets stand for
// addresses: branches of a function stay in its segment, where the two differ
// by a constant.
type codeReader struct {
	store *image.Store
	insts map[image.Addr]x86.Inst
}

func newCodeReader(s *image.Store) *codeReader { return &codeReader{s, map[image.Addr]x86.Inst{}} }

// at returns the instruction at a; Len is 0 if there is none that is known.
func (c *codeReader) at(a image.Addr) x86.Inst {
	a.Return = false
	in, ok := c.insts[a]
	if !ok && c.store != nil && a.Image != nil {
		if b := a.Image.Text(a.Offset, 15); len(b) > 0 {
			in, _ = x86.Decode(b, a.Offset)
		}
		c.insts[a] = in
	}
	return in
}

// target returns where the direct call at a goes.
func (c *codeReader) target(a image.Addr) (image.Addr, bool) {
	in := c.at(a)
	if in.Len == 0 || in.Control != x86.Call {
		return image.Addr{}, false
	}
	return image.Addr{Image: a.Image, Offset: in.Target}, true
}

// reach reports whether a call of entry can lead to goal in n more
// instructions, along any path, with depth frames more than before the call.
// The call returns to back. behind tells where a jump leads that the code does
// not: out of a PLT.
func (c *codeReader) reach(entry, back image.Addr, n int, goal image.Addr, depth int, behind func(image.Addr) (image.Addr, bool)) bool {
	const most = 4 // calls on the way
	type state struct {
		at       image.Addr
		depth, n int
		ret      [most]image.Addr
	}
	todo := make([]state, 1, 8)
	todo[0] = state{at: entry, depth: 1, n: n, ret: [most]image.Addr{back}}
	for steps := 0; len(todo) > 0 && steps < 128; steps++ {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if s.n == 0 {
			if s.at == goal && s.depth == depth {
				return true
			}
			continue
		}
		in := c.at(s.at)
		if in.Len == 0 {
			continue
		}
		s.n--
		next, jump := s, s
		next.at.Offset, jump.at.Offset = in.End(), in.Target
		switch in.Control {
		case x86.Next:
			todo = append(todo, next)
		case x86.Jump:
			todo = append(todo, jump)
		case x86.CondJump:
			todo = append(todo, next, jump)
		case x86.IndirectJump:
			if to, ok := behind(s.at); ok {
				jump.at = to
				todo = append(todo, jump)
			}
		case x86.Call:
			if s.depth < most {
				jump.ret[s.depth] = next.at
				jump.depth++
				todo = append(todo, jump)
			}
		case x86.Return:
			if s.depth > 0 {
				jump.depth--
				jump.at = s.ret[jump.depth]
				todo = append(todo, jump)
			}
		}
	}
	return false
}

// before returns the calls in the function at a that lie less than 64 bytes
// before it, the nearest first. The function is decoded from its entry.
func (c *codeReader) before(a image.Addr) (calls []image.Addr) {
	f := a.Image.FunctionAt(a.Offset)
	if f == nil || a.Offset-f.Entry > 1<<16 {
		return nil
	}
	for at := (image.Addr{Image: a.Image, Offset: f.Entry}); at.Offset < a.Offset; {
		in := c.at(at)
		if in.Len == 0 {
			at.Offset++
			continue
		}
		if in.IsCall() && a.Offset-in.End() < 64 && in.End() <= a.Offset {
			calls = append(calls, at)
		}
		at.Offset = in.End()
	}
	slices.Reverse(calls)
	return calls
}
