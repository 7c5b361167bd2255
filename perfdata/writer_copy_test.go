package perfdata

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyRecording reads a recording and writes it again.
func copyRecording(t *testing.T, path string, start func(*Meta) (*Writer, error)) {
	t.Helper()
	rd, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	w, err := start(rd.Meta())
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range rd.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyToFile(t *testing.T, path string, opts WriteOptions) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	copyRecording(t, path, func(m *Meta) (*Writer, error) { return NewFileWriter(f, m, opts) })
	return f.Name()
}

func copyToPipe(t *testing.T, path string, opts WriteOptions) io.Reader {
	t.Helper()
	var b bytes.Buffer
	copyRecording(t, path, func(m *Meta) (*Writer, error) { return NewPipeWriter(&b, m, opts) })
	return &b
}

// kernelSymbols has call chains through the kernel, of which perf 6.1 prints
// the symbols with offset and dso from a file and without from a pipe.
const kernelSymbols = "KDAB_perfparser/parallel_static_gcc/perf.data.zstd"

// For perf a public recording and our copy of it are the same.
func TestCopiesOfPublicRecordings(t *testing.T) {
	for _, name := range []string{
		"google_perf_data_converter/quipper/perf.data.callgraph_and_branch-3.4",
		"google_perf_data_converter/quipper/perf.data.branch_stack_hw_index",
		"google_perf_data_converter/quipper/perf.data.armv7-3.4",
		"google_perf_data_converter/quipper/perf.data.ctx_switch_namespaces-4.14",
		"google_perf_data_converter/quipper/perf.data.lost_samples-4.4",
		"google_perf_data_converter/quipper/perf.data.hybrid_topology",
		"google_perf_data_converter/quipper/perf.data.forkexit-3.8",
		"google_perf_data_converter/quipper/perf.data.piped.hw_and_sw-3.4",
		"google_perf_data_converter/quipper/perf.data.piped.header_features_aligned-6.12",
		"KDAB_hotspot/perf.data.true.v2",
		"KDAB_perfparser/probe.data.stream",
		"KDAB_perfparser/contentsize.data",
		kernelSymbols,
		// Not vector_static_gcc/perf.lbr.data: of its empty branch stacks perf
		// 6.1 prints the first entry, that is whatever lies behind the record.
		"microsoft_LinuxTracepoints-Net/pipe.data",
	} {
		t.Run(name, func(t *testing.T) {
			path := fixture(t, name)
			want := strings.Split(perfTool(t, nil, "script", "-f", "--ns", "-i", path), "\n")
			for _, opts := range []WriteOptions{{}, {Zstd: 1}} {
				compareLines(t, strings.Split(perfTool(t, nil, "script", "-f", "--ns", "-i", copyToFile(t, path, opts)), "\n"), want)
				if name == kernelSymbols {
					continue
				}
				compareLines(t, strings.Split(perfTool(t, copyToPipe(t, path, opts), "script", "--ns", "-i", "-"), "\n"), want)
			}
		})
	}
}

// perf 6.1 refuses these recordings, because their attrs have 136 bytes, but
// reads our copies.
func TestCopiesAreReadableForOldPerf(t *testing.T) {
	for name, samples := range map[string]string{
		"KDAB_hotspot/perf.data.PerfFormatLost":                           "34",
		"KDAB_perfparser/cpp-inlining/cpp-inlining.perf.data":             "539",
		"mstange_linux-perf-data/sleep.data":                              "7",
		"mstange_linux-perf-data/sleep.compressed.data":                   "8",
		"google_autofdo/hierarchical_discriminator_test.x86_64.perf.data": "145",
		"nevesnunes_covlizer/perf.data":                                   "856",
	} {
		t.Run(name, func(t *testing.T) {
			out := perfTool(t, nil, "report", "-f", "--stats", "-i", copyToFile(t, fixture(t, name), WriteOptions{}))
			for _, line := range printedLines(out) {
				if rest, ok := strings.CutPrefix(line, "SAMPLE events: "); ok {
					if strings.Fields(rest)[0] != samples {
						t.Errorf("perf sees %s samples, want %s", rest, samples)
					}
					return
				}
			}
			t.Errorf("perf counts no samples:\n%s", out)
		})
	}
}
