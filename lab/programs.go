package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed testdata
var sources embed.FS

// A program is one workload of the lab. The constants of estimators are chosen
// on tuning programs only; report programs show what they are worth elsewhere.
type program struct {
	name   string
	tuning bool
	args   []string               // run in the folder of inputs
	build  func(dir string) error // makes args[0] there
}

// programs are Debian's own binaries, unmodified, but for the two that show
// what Debian 12 has little of: Go, and C++ with virtual calls. All run on one
// thread, read only files made by writeInputs, and do the same work each time.
func programs() []program {
	return []program{
		{name: "zstd", tuning: true, args: []string{"zstd", "-q", "-12", "-T1", "-c", "text"}},
		{name: "brotli", args: []string{"brotli", "-q", "7", "-c", "text"}},
		{name: "php", tuning: true, args: []string{"php", "-n", "work.php"}},
		{name: "guile", args: []string{"guile", "--no-auto-compile", "-s", "work.scm"}},
		{name: "tclsh", tuning: true, args: []string{"tclsh", "work.tcl"}},
		{name: "bc", args: []string{"bc", "-l", "work.bc"}},
		{name: "m4", tuning: true, args: []string{"m4", "work.m4"}},
		{name: "xmllint", args: []string{"xmllint", "--noout", "--xpath", `count(//book[@lang="ka"]/chapter[@pages > 100])`, "library.xml"}},
		// Debian's ImageMagick 6 under its own name: convert may be another program.
		{name: "convert", tuning: true, args: []string{"convert-im6.q16", "-limit", "thread", "1", "image.ppm",
			"-blur", "2x1", "-resize", "70%", "-rotate", "12", "-colors", "32", "jpg:-"}},
		{name: "ghostscript", args: []string{"gs", "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-sDEVICE=png16m", "-r50",
			"-sOutputFile=/dev/null", "work.ps"}},
		{name: "ripgrep", tuning: true, args: []string{"rg", "-j1", "--sort", "path", "-c", `(qui|dra)\w+gul|sto[a-m]+x`, "tree"}},
		{name: "nasm", args: []string{"nasm", "-f", "elf64", "-o", "work.o", "work.asm"}},
		{name: "ffmpeg", tuning: true, args: []string{"ffmpeg", "-hide_banner", "-loglevel", "error", "-threads", "1",
			"-i", "sound.wav", "-c:a", "aac", "-threads", "1", "-f", "adts", "-y", "/dev/null"}},
		{name: "shapes (C++)", args: []string{"shapes", "200"}, build: compile("g++", "-O2", "-g", "-o", "shapes", "shapes.cc")},
		{name: "busybox awk", tuning: true, args: []string{"busybox", "awk",
			"{for(i=1;i<=NF;i++)c[$i]++} END{for(w in c)n+=c[w]*length(w);print n}", "text"}},
		{name: "words (Go)", args: []string{"words", "40"}, build: compile("go", "build", "-o", "words", "words.go")},
	}
}

// writeInputs fills dir with everything the programs read.
func writeInputs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := sources.ReadDir("testdata")
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"text":        text(1, 1_500_000),
		"library.xml": xml(2, 6000),
		"image.ppm":   picture(3, 320, 240),
		"sound.wav":   sound(4, 6),
		"work.asm":    assembly(5, 1500),
		// A module of its own, so that ./... of this one leaves it alone.
		"go.mod": []byte("module inputs\n"),
	}
	for _, e := range entries {
		if files[e.Name()], err = sources.ReadFile("testdata/" + e.Name()); err != nil {
			return err
		}
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return fmt.Errorf("writing input %s: %w", name, err)
		}
	}
	return tree(filepath.Join(dir, "tree"), 6, 60, 30_000)
}
