package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// make returns the program's file, which it builds if it is not there yet.
func (l *live) make(ctx context.Context, p *liveProgram) (string, error) {
	if !p.Built() {
		return exec.LookPath(p.args[0])
	}
	bin := filepath.Join(l.dir, "bin", p.args[0])
	if _, err := os.Stat(bin); err == nil && p.Source != "" {
		return bin, nil // ours may have changed since
	}
	src, err := l.inputs(), error(nil)
	if p.Source != "" {
		if src, err = l.sources.get(ctx, p.Source); err != nil {
			return "", err
		}
	}
	obj := filepath.Join(l.dir, "obj", p.args[0])
	for _, d := range []string{obj, filepath.Dir(bin)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(l.log, "building %s\n", p.Name)
	for _, s := range p.build {
		dir, args := s.expand(src, obj, bin)
		if err := runIn(ctx, dir, args); err != nil {
			return "", fmt.Errorf("building %s: %w", p.Name, err)
		}
	}
	return bin, nil
}

// mask names the processor features for which libc has variants of its string
// functions and which either this processor or the emulated one lacks: with
// them masked both choose the same variants. QEMU 7.2 emulates all up to AVX2,
// ERMS and BMI2 (-cpu max), but not AVX512.
func mask(cpuinfo string) string {
	have := map[string]bool{}
	for line := range strings.Lines(cpuinfo) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "flags" {
			for _, f := range strings.Fields(v) {
				have[f] = true
			}
			break
		}
	}
	off := []string{"-AVX512F", "-AVX512VL", "-AVX512BW"}
	for _, f := range []struct{ flag, tunable string }{{"avx2", "AVX2"}, {"erms", "ERMS"}, {"bmi2", "BMI2"}, {"movbe", "MOVBE"}, {"sse4_2", "SSE4_2"}} {
		if !have[f.flag] {
			off = append(off, "-"+f.tunable)
		}
	}
	return "GLIBC_TUNABLES=glibc.cpu.hwcaps=" + strings.Join(off, ",")
}
