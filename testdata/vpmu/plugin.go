package vpmu

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed plugin
var pluginSource embed.FS

var pluginFlags = []string{"-shared", "-fPIC", "-O2", "-march=native", "-std=gnu11", "-Wall", "-Wextra", "-fvisibility=hidden"}

// buildPlugin compiles the plugin for a number of lanes, unless workDir has
// it already, and returns the shared object's path.
func buildPlugin(workDir string, lanes int) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, pluginFlags, lanes)
	if host, err := os.ReadFile("/proc/cpuinfo"); err == nil { // -march=native
		for _, line := range strings.SplitN(string(host), "\n", 40) {
			if strings.HasPrefix(line, "flags") {
				fmt.Fprintln(h, line)
				break
			}
		}
	}
	files := map[string][]byte{}
	err := fs.WalkDir(pluginSource, "plugin", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := pluginSource.ReadFile(path)
		files[filepath.Base(path)] = b
		fmt.Fprintln(h, path, len(b))
		h.Write(b)
		return err
	})
	if err != nil {
		return "", err
	}
	so := filepath.Join(workDir, "vpmu-"+hex.EncodeToString(h.Sum(nil)[:8])+".so")
	if _, err := os.Stat(so); err == nil {
		return so, nil
	}
	src, err := os.MkdirTemp(workDir, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(src)
	tmp := filepath.Join(src, "vpmu.so")
	args := append([]string{}, pluginFlags...)
	args = append(args, fmt.Sprintf("-DLANES=%d", lanes), "-o", tmp)
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(src, name), b, 0o600); err != nil {
			return "", err
		}
		if strings.HasSuffix(name, ".c") {
			args = append(args, filepath.Join(src, name))
		}
	}
	args = append(args, "-lm", "-lpthread")
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the plugin: %w\n%s", err, out)
	}
	return so, os.Rename(tmp, so)
}
