package accuracy

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// FileOffset tells where in a file the code of a link-time address lies;
// callgrind speaks of addresses, profiles of file offsets.
type FileOffset func(file string, vaddr uint64) (offset uint64, ok bool)

// callgrindReader reads the output of
//
//	valgrind --tool=callgrind --dump-instr=yes --collect-jumps=yes
//
// whose format is described in the Valgrind manual, "Callgrind Format
// Specification". Names are given once and then stand as (number); positions
// are absolute, or relative to those of the line before.
type callgrindReader struct {
	p      *Profile
	offset FileOffset

	instr, lines bool // which positions a line begins with
	names        map[string]string
	last         uint64 // address of the last cost line
	object, fn   string
	cobject, cfn string
	call         *callgrindCall
	afterJump    *callgrindJump
}

type callgrindCall struct {
	count  float64
	target uint64
}

type callgrindJump struct{ taken, total float64 }

func (r *Reader) callgrind(p *Profile, in io.Reader) error {
	c := &callgrindReader{p: p, offset: r.FileOffset, lines: true, names: map[string]string{}}
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 16<<20)
	for n := 1; sc.Scan(); n++ {
		if err := c.line(sc.Text()); err != nil {
			return fmt.Errorf("%s:%d: %w", p.Name, n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	if !c.instr {
		return fmt.Errorf("%s: no instruction addresses; record with callgrind --dump-instr=yes", p.Name)
	}
	return nil
}

func (c *callgrindReader) line(s string) error {
	if s == "" || s[0] == '#' {
		return nil
	}
	if s[0] == '+' || s[0] == '-' || s[0] == '*' || '0' <= s[0] && s[0] <= '9' {
		return c.cost(s)
	}
	if key, value, ok := strings.Cut(s, "="); ok && !strings.Contains(key, ":") {
		return c.spec(key, value)
	}
	if key, value, ok := strings.Cut(s, ":"); ok {
		if key == "positions" {
			c.instr = strings.Contains(value, "instr")
			c.lines = strings.Contains(value, "line")
		}
		return nil
	}
	return fmt.Errorf("unexpected line %.40q", s)
}

func (c *callgrindReader) spec(key, value string) error {
	switch key {
	case "ob":
		c.object = c.name("ob", value)
	case "fn":
		c.fn = c.name("fn", value)
		c.cobject = ""
	case "cob":
		c.cobject = c.name("ob", value)
	case "cfn":
		c.cfn = c.name("fn", value)
	case "calls":
		return c.calls(value)
	case "jcnd", "jump":
		return c.jump(key, value)
	}
	return nil // fl, fi, fe, cfi, cfl: source files
}

// name resolves "(3) name" and "(3)".
func (c *callgrindReader) name(space, s string) string {
	if !strings.HasPrefix(s, "(") {
		return s
	}
	id, name, _ := strings.Cut(s, ")")
	key := space + id
	if name = strings.TrimSpace(name); name != "" {
		c.names[key] = name
	}
	return c.names[key]
}

func (c *callgrindReader) calls(value string) error {
	f := strings.Fields(value)
	if len(f) < 2 {
		return fmt.Errorf("calls= needs a count and a position, found %q", value)
	}
	n, err := strconv.ParseFloat(f[0], 64)
	if err != nil {
		return err
	}
	target, err := c.position(f[1])
	c.call = &callgrindCall{n, target}
	return err
}

// jump remembers a conditional jump: taken/executed, then the target. The next
// line says where the jump stands.
func (c *callgrindReader) jump(key, value string) error {
	c.afterJump = &callgrindJump{}
	if key == "jump" {
		return nil
	}
	counts, _, _ := strings.Cut(value, " ")
	taken, total, _ := strings.Cut(counts, "/")
	var err1, err2 error
	c.afterJump.taken, err1 = strconv.ParseFloat(taken, 64)
	c.afterJump.total, err2 = strconv.ParseFloat(total, 64)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("jcnd= needs taken/executed, found %q", value)
	}
	return nil
}

func (c *callgrindReader) position(s string) (uint64, error) {
	switch s[0] {
	case '*':
		return c.last, nil
	case '+', '-':
		d, err := strconv.ParseInt(s, 0, 64)
		return c.last + uint64(d), err
	}
	return strconv.ParseUint(s, 0, 64)
}

// cost reads a line that starts with a position: the cost of an instruction,
// or where a call or jump announced before stands.
func (c *callgrindReader) cost(s string) error {
	first, _, _ := strings.Cut(s, " ")
	at, err := c.position(first)
	if err != nil {
		return err
	}
	c.last = at
	switch {
	case c.call != nil:
		c.addCall(at)
	case c.afterJump != nil:
		if c.afterJump.total > 0 {
			c.addBranch(at)
		}
	}
	c.call, c.afterJump = nil, nil
	return nil
}

func (c *callgrindReader) addCall(site uint64) {
	callee := c.cobject
	if callee == "" {
		callee = c.object
	}
	from, ok1 := c.offset(c.object, site)
	to, ok2 := c.offset(callee, c.call.target)
	c.cobject = ""
	if !ok1 || !ok2 {
		c.p.Unplaced += c.call.count
		return
	}
	c.p.addCall(Call{c.object, from, callee, to}, plainName(c.fn), plainName(c.cfn), c.call.count)
}

func (c *callgrindReader) addBranch(at uint64) {
	if from, ok := c.offset(c.object, at); ok {
		j := c.afterJump
		c.p.addBranch(BranchSite{path.Base(c.object), from}, Branch{j.taken, j.total - j.taken})
	}
}

// plainName drops what callgrind adds to names: the recursion level behind an
// apostrophe, the symbol version behind @@, and an address in place of a name.
func plainName(s string) string {
	s, _, _ = strings.Cut(s, "@@")
	if i := strings.LastIndexByte(s, '\''); i > 0 {
		if _, err := strconv.Atoi(s[i+1:]); err == nil {
			s = s[:i]
		}
	}
	if strings.HasPrefix(s, "0x0000") {
		return ""
	}
	return s
}
