package image

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// disassembly is what objdump -d says of one instruction.
type disassembly struct {
	addr   uint64
	length int
	text   string // "call   26e90 <abort@@GLIBC_2.2.5-0x…>"
	symbol string // "<name>:" it stands below
}

// objdump disassembles a file; addresses are link-time.
func objdump(t testing.TB, path string, args ...string) []disassembly {
	t.Helper()
	cmd := exec.Command("objdump", append(append([]string{"-d", "-w"}, args...), path)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := parseObjdump(out)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("objdump -d %s shows no instruction", path)
	}
	return all
}

func parseObjdump(r io.Reader) (all []disassembly) {
	sc := bufio.NewScanner(r)
	symbol := ""
	for sc.Scan() {
		line := sc.Text()
		if strings.HasSuffix(line, ">:") {
			_, symbol, _ = strings.Cut(strings.TrimSuffix(line, ">:"), " <")
			continue
		}
		at, rest, ok := strings.Cut(line, ":\t")
		addr, isHex := parseHex(strings.TrimSpace(at))
		if !ok || !isHex {
			continue
		}
		code, text, _ := strings.Cut(rest, "\t")
		all = append(all, disassembly{addr, len(strings.Fields(code)), text, symbol})
	}
	return all
}

// isCall says whether objdump's text is a call, whatever its prefixes.
func (d disassembly) isCall() bool {
	for _, w := range strings.Fields(d.text) {
		switch {
		case w == "call" || w == "lcall":
			return true
		case w == "bnd" || w == "notrack" || strings.HasPrefix(w, "rex"):
		default:
			return false
		}
	}
	return false
}

// TestCallSitesOfLibc asks for the call site of the return address of every
// call objdump finds in libc.
func TestCallSitesOfLibc(t *testing.T) {
	s := NewStore(Options{})
	im := s.Image(Key{Path: libc})
	im.load()
	calls, wrong := 0, 0
	for _, d := range objdump(t, libc) {
		if !d.isCall() {
			continue
		}
		calls++
		off, _ := im.file.offset(d.addr)
		got := s.CallSite(s.Loc(Addr{Image: im, Offset: off + uint64(d.length), Return: true}))
		if got.Offset != off || got.Return {
			wrong++
			if wrong < 10 {
				t.Logf("call at %#x (%s): CallSite %#x", d.addr, d.text, got.Offset)
			}
		}
	}
	t.Logf("%d calls, %d wrong", calls, wrong)
	if calls < 5000 || wrong*10_000 > calls {
		t.Errorf("%d of %d call sites are not objdump's", wrong, calls)
	}
}
