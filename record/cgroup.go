package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openCgroup opens a cgroup by its path, or by its name below the mount of the
// perf_event controller or the unified hierarchy.
func openCgroup(name string) (int, error) {
	var tried []string
	for _, dir := range cgroupMounts() {
		path := filepath.Join(dir, name)
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			return fd, nil
		}
		tried = append(tried, path)
	}
	return -1, &HintError{fmt.Errorf("no cgroup %q: tried %s", name, strings.Join(tried, ", ")), "cat /proc/PID/cgroup shows the cgroup of a process"}
}

// cgroupMounts reads where cgroups are mounted; "" is for full paths.
func cgroupMounts() []string {
	var v1, v2 []string
	b, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		switch {
		case f[2] == "cgroup" && strings.Contains(","+f[3]+",", ",perf_event,"):
			v1 = append(v1, f[1])
		case f[2] == "cgroup2":
			v2 = append(v2, f[1])
		}
	}
	return append(append(v1, v2...), "/")
}
