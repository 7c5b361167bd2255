package vpmu

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// cgCall is a call edge by addresses of the ELF files (not file offsets).
type cgCall struct {
	siteOb   string
	site     uint64
	calleeOb string
	callee   uint64
}

// callgrindCalls reads the call lines of a callgrind.out written with
// --dump-instr=yes (valgrind manual, Callgrind Format Specification).
func callgrindCalls(path string) (map[cgCall]float64, map[cgCall]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	calls, names := map[cgCall]float64{}, map[cgCall]string{}
	ids := map[string]string{}
	name := func(kind, s string) string { // "(id) name" defines, "(id)" refers
		id, text, ok := strings.Cut(s, ") ")
		if ok {
			ids[kind+id+")"] = text
			return text
		}
		return ids[kind+s]
	}
	var ob, cob, fn, cfn string
	var last, target uint64
	var pending float64
	skip := false
	pos := func(s string) (uint64, error) {
		switch {
		case s == "*":
			return last, nil
		case strings.HasPrefix(s, "+"):
			n, err := strconv.ParseUint(s[1:], 0, 64)
			return last + n, err
		case strings.HasPrefix(s, "-"):
			n, err := strconv.ParseUint(s[1:], 0, 64)
			return last - n, err
		}
		return strconv.ParseUint(s, 0, 64)
	}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		l := sc.Text()
		key, val, isKey := strings.Cut(l, "=")
		switch {
		case l == "" || strings.HasPrefix(l, "#") || strings.Contains(l, ": ") && !isKey:
		case isKey && key == "ob":
			ob = name("ob", val)
		case isKey && key == "cob":
			cob = name("ob", val)
		case isKey && key == "fn":
			fn = name("fn", val)
		case isKey && key == "cfn":
			cfn = name("fn", val)
		case isKey && key == "calls":
			f := strings.Fields(val)
			if pending, err = strconv.ParseFloat(f[0], 64); err != nil {
				return nil, nil, fmt.Errorf("%q: %w", l, err)
			}
			if target, err = pos(f[1]); err != nil {
				return nil, nil, fmt.Errorf("%q: %w", l, err)
			}
			if cob == "" {
				cob = ob
			}
		case isKey && (key == "jump" || key == "jcnd"):
			skip = true
		case isKey:
		case skip:
			skip = false
		case l[0] == '0' || l[0] == '+' || l[0] == '-' || l[0] == '*':
			at, err := pos(strings.Fields(l)[0])
			if err != nil {
				return nil, nil, fmt.Errorf("%q: %w", l, err)
			}
			if pending > 0 {
				c := cgCall{ob, at, cob, target}
				calls[c] += pending
				names[c] = fn + " -> " + cfn
				pending, cob = 0, ""
			}
			last = at
		}
	}
	return calls, names, sc.Err()
}

// elfCode is the text of one ELF file, by address.
type elfCode struct {
	delta []struct{ off, end, vaddr uint64 }
	f     *elf.File
}

func openCode(path string) (*elfCode, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	c := &elfCode{f: f}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			c.delta = append(c.delta, struct{ off, end, vaddr uint64 }{p.Off, p.Off + p.Filesz, p.Vaddr})
		}
	}
	return c, nil
}

func (c *elfCode) vaddr(off uint64) uint64 {
	for _, d := range c.delta {
		if off >= d.off && off < d.end {
			return off - d.off + d.vaddr
		}
	}
	return off
}

func (c *elfCode) bytes(vaddr uint64, n int) []byte {
	if c.f == nil {
		return nil
	}
	for _, p := range c.f.Progs {
		if p.Type == elf.PT_LOAD && vaddr >= p.Vaddr && vaddr < p.Vaddr+p.Filesz {
			b := make([]byte, n)
			k, _ := p.ReadAt(b, int64(vaddr-p.Vaddr))
			return b[:k]
		}
	}
	return nil
}

// isCall reports whether the instruction at vaddr is a call.
func (c *elfCode) isCall(vaddr uint64) bool {
	b := c.bytes(vaddr, 4)
	for len(b) > 1 && (b[0] == 0xf2 || b[0] == 0x66 || b[0] == 0x3e || b[0] == 0x2e || b[0]&0xf0 == 0x40) {
		b = b[1:]
	}
	return len(b) > 1 && (b[0] == 0xe8 || b[0] == 0xff && (b[1]>>3&7 == 2 || b[1]>>3&7 == 3))
}
