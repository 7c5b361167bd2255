package x86

import (
	"bufio"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// objdumpInst is one line of objdump -d.
type objdumpInst struct {
	pc       uint64
	len      int
	mnemonic string
	operand  string
}

// objdump lists the instructions of .text as GNU binutils see them.
func objdump(t *testing.T, file string) []objdumpInst {
	t.Helper()
	cmd := exec.Command("objdump", "-d", "-w", "-j", ".text", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("objdump (Debian's binutils) is needed: %v", err)
	}
	var list []objdumpInst
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		f := strings.SplitN(sc.Text(), "\t", 3)
		if len(f) < 3 {
			continue
		}
		pc, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(f[0]), ":"), 16, 64)
		if err != nil {
			continue
		}
		text := strings.Fields(f[2])
		for len(text) > 1 && (text[0] == "bnd" || text[0] == "notrack" || strings.HasPrefix(text[0], "rep") || text[0] == "lock" || text[0] == "data16" || text[0] == "cs" || text[0] == "ds" || strings.HasPrefix(text[0], "rex")) {
			text = text[1:]
		}
		in := objdumpInst{pc: pc, len: len(strings.Fields(f[1]))}
		if len(text) > 0 {
			in.mnemonic = strings.TrimSuffix(text[0], ",pn")
		}
		if len(text) > 1 {
			in.operand = text[1]
		}
		list = append(list, in)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return list
}

// goBinary builds a small Go program, whose code no C compiler wrote.
func goBinary(t *testing.T) string {
	dir := t.TempDir()
	src := filepath.Join(dir, "hello.go")
	if err := os.WriteFile(src, []byte("package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "hello")
	if out, err := exec.Command("go", "build", "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

func libc(t *testing.T) string {
	out, err := exec.Command("gcc", "-print-file-name=libc.so.6").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestObjdump compares lengths, kinds and targets with objdump over whole
// text sections. Instructions of other lengths would shift all that follow, so
// each is decoded where objdump says it is.
func TestObjdump(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{libc(t), git, goBinary(t)} {
		t.Run(filepath.Base(file), func(t *testing.T) { compareObjdump(t, file) })
	}
}

func compareObjdump(t *testing.T, file string) {
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	code, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	wrong, flow := 0, 0
	complain := func(o objdumpInst, what string, args ...any) {
		if wrong++; wrong <= 12 {
			b := code[o.pc-text.Addr:]
			t.Logf("%#x % x %s %s: "+what, append([]any{o.pc, b[:min(o.len, len(b))], o.mnemonic, o.operand}, args...)...)
		}
	}
	list := objdump(t, file)
	for _, o := range list {
		if o.mnemonic == "(bad)" || o.mnemonic == ".byte" || o.mnemonic == "" {
			continue
		}
		in, err := Decode(code[o.pc-text.Addr:], o.pc)
		if want := objdumpControl(o); want != Next {
			flow++
			if err != nil || in.Control != want {
				complain(o, "control %v (%v)", in.Control, err)
				continue
			}
			if target, err := strconv.ParseUint(o.operand, 16, 64); err == nil && in.Target != target {
				complain(o, "target %#x", in.Target)
			}
		}
		switch {
		case err != nil:
			complain(o, "%v", err)
		case in.Len != o.len:
			complain(o, "length %d", in.Len)
		case in.Control != objdumpControl(o):
			complain(o, "control %v", in.Control)
		}
	}
	t.Logf("%d instructions, %d of control flow, %d wrong (%.4f %%)", len(list), flow, wrong, 100*float64(wrong)/float64(len(list)))
	if len(list) < 100000 || flow < len(list)/10 {
		t.Error("too few instructions compared")
	}
	if wrong*10000 > len(list) {
		t.Error("more than 0.01 % of instructions differ")
	}
}

func objdumpControl(o objdumpInst) Control {
	_, err := strconv.ParseUint(o.operand, 16, 64)
	direct := err == nil
	switch m := o.mnemonic; {
	case strings.HasPrefix(m, "jmp"), m == "ljmp":
		if direct {
			return Jump
		}
		return IndirectJump
	case strings.HasPrefix(m, "call"):
		if direct {
			return Call
		}
		return IndirectCall
	case strings.HasPrefix(m, "ret"), m == "lret", strings.HasPrefix(m, "iret"):
		return Return
	case m == "ud2", m == "ud1", m == "hlt", m == "int3", m == "int" && o.operand == "$0x3":
		return Trap
	case m[0] == 'j', strings.HasPrefix(m, "loop"), m == "xbegin":
		return CondJump
	}
	return Next
}
