package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A liveProgram is one workload of the live table: it runs natively for one
// or two seconds, does the same work each time and on one thread.
type liveProgram struct {
	Name   string
	Source string // Debian source package the lab builds it from, or "" if it is installed or ours
	// build makes the program file bin; src is the unpacked source (or, for
	// ours, the folder of inputs), obj a folder for what else is built.
	build []liveStep
	args  []string // args[0] is the file of a program that is not built; all run in the folder of inputs
}

// Built reports whether the lab compiled the program, with frame pointers.
func (p *liveProgram) Built() bool { return p.build != nil }

// A liveStep is one command of a build; $SRC, $OBJ and $BIN are replaced.
type liveStep struct {
	dir  string
	args []string
}

// frames are the flags of the programs built: optimised as distributions do,
// with frame pointers, which leaves gcc's shrink-wrapping on.
const frames = "-O2 -g -fno-omit-frame-pointer"

func step(dir, command string) liveStep { return liveStep{dir, strings.Fields(command)} }

// expand replaces the variables of a step.
func (s liveStep) expand(src, obj, bin string) (dir string, args []string) {
	r := strings.NewReplacer("$SRC", src, "$OBJ", obj, "$BIN", bin)
	for _, a := range s.args {
		args = append(args, r.Replace(a))
	}
	return r.Replace(s.dir), args
}

// builtPrograms are made from Debian's sources and from ours. Lua's hash
// seed, which is else taken from the clock and from addresses, is a constant.
func builtPrograms() []liveProgram {
	c := "gcc " + frames + " "
	return []liveProgram{
		{
			Name: "lua", Source: "lua5.4", args: []string{"lua", "work.lua", "110"},
			build: []liveStep{
				{"$SRC/src", []string{"sh", "-c", `echo '#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"' > $OBJ/lua5.4-deb-multiarch.h
					exec gcc -std=gnu99 ` + frames + ` -I$OBJ -DLUA_USE_POSIX -DLUA_USE_DLOPEN -DLUA_COMPAT_5_3 '-Dluai_makeseed(L)=1u' \
					-Wl,-E -o $BIN $(ls *.c | grep -v '^luac.c$') -lm -ldl`}},
			},
		},
		{
			Name: "sqlite", Source: "sqlite3", args: sqlScript("sqlite"),
			build: []liveStep{
				step("$OBJ", "$SRC/configure --disable-tcl --disable-readline -q"),
				step("$OBJ", "make -s sqlite3.c shell.c"),
				step("$OBJ", c+"-DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -o $BIN shell.c sqlite3.c -lm"),
			},
		},
		{
			Name: "zstd", Source: "libzstd", args: append([]string{"zstd"}, zstdArgs...),
			build: []liveStep{
				{"$SRC/programs", []string{"make", "-s", "zstd", "CFLAGS=" + frames, "HAVE_ZLIB=0", "HAVE_LZMA=0", "HAVE_LZ4=0", "ZSTD_LEGACY_SUPPORT=0", "BUILD_DIR=$OBJ"}},
				step("$SRC/programs", "cp zstd $BIN"),
			},
		},
		{
			Name: "bzip2", Source: "bzip2", args: []string{"bzip2", "-c", "long-text"},
			build: []liveStep{step("$SRC", c+"-D_FILE_OFFSET_BITS=64 -o $BIN blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c bzlib.c bzip2.c")},
		},
		{
			Name: "shapes (C++)", args: []string{"shapes", "1500"},
			build: []liveStep{step("$SRC", "g++ "+frames+" -o $BIN shapes.cc")},
		},
		{
			Name: "words (Go)", args: []string{"words", "700"},
			build: []liveStep{step("$SRC", "go build -o $BIN words.go")},
		},
	}
}

// shippedPrograms are Debian's own binaries: stripped, and without frame
// pointers.
func shippedPrograms() []liveProgram {
	return []liveProgram{
		{Name: "lua5.4", args: []string{"lua5.4", "work.lua", "110"}},
		{Name: "sqlite3", args: sqlScript("sqlite3")},
		{Name: "zstd", args: append([]string{"zstd"}, zstdArgs...)},
		{Name: "bzip2", args: []string{"bzip2", "-c", "long-text"}},
		{Name: "bc", args: append([]string{"bc", "-l"}, slices.Repeat([]string{"work.bc"}, 90)...)},
		{Name: "m4", args: append([]string{"m4"}, slices.Repeat([]string{"work.m4"}, 28)...)},
	}
}

// Worker and input threads would make the order of work a matter of chance.
var zstdArgs = []string{"-q", "-12", "--single-thread", "--no-asyncio", "-c", "long-text"}

func sqlScript(name string) []string {
	args := []string{name, ":memory:"}
	for range 6 {
		args = append(args, ".read work.sql")
	}
	return args
}

// writeLiveInputs adds to the inputs of the lab what only the live table reads.
func writeLiveInputs(dir string) error {
	if err := writeInputs(dir); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "long-text"), text(7, 14_000_000), 0o644)
}
