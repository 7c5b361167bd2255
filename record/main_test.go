package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
)

// The test program is also the recorder under test, in a process of its own
// that can be killed and limited, and the helper that becomes the program.
func TestMain(m *testing.M) {
	switch {
	case IsHelper():
		os.Exit(Helper())
	case os.Getenv(recorderEnv) != "":
		os.Exit(recorderMain(os.Getenv(recorderEnv)))
	}
	os.Exit(m.Run())
}

const recorderEnv = "PERFCORRECT_TEST_RECORDER"

// order is what a recorder process is to do, outcome what became of it.
type order struct {
	Options Options
	Output  string
	Zstd    int
	Outcome string // file to write the outcome to
}

type outcome struct {
	Counts Counts
	Status int
	Line   string
	Err    string
	Hint   string
	Said   []string
}

func recorderMain(text string) int {
	os.Unsetenv(recorderEnv)
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	var out outcome
	err := out.record(&o)
	if err != nil {
		out.Err = err.Error()
		var h *HintError
		if errors.As(err, &h) {
			out.Hint = h.Hint
		}
	}
	b, _ := json.Marshal(out)
	if err := os.WriteFile(o.Outcome, b, 0o666); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	return 0
}

func (out *outcome) record(o *order) error {
	cfg, err := Prepare(o.Options)
	if err != nil {
		return err
	}
	out.Line = cfg.Plan.Line
	cfg.Output = Output{Name: o.Output, Zstd: o.Zstd}
	cfg.Cmdline = []string{"perfcorrect", "record", "--"}
	if o.Options.Target.AllCPUs {
		cfg.Cmdline[2] = "-a"
	}
	cfg.Say = func(format string, args ...any) { out.Said = append(out.Said, fmt.Sprintf(format, args...)) }
	res, err := Run(context.Background(), cfg)
	if res != nil {
		out.Counts, out.Status = res.Counts, res.Status
	}
	return err
}
