package record

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// The periods add up to the time the program ran, though the period varies.
func TestPeriodsAddUp(t *testing.T) {
	for _, jitter := range []float64{0, 0.1, 0.5} {
		o := command("sh", "-c", program(t, "calls")+" 300000; cat /proc/$$/stat >&2")
		o.Jitter, o.UserOnly, o.Freq, o.NoDump = jitter, false, 2000, true
		r := startRecorder(t, order{Options: o})
		out := r.wait(t)
		if out.Err != "" {
			t.Fatal(out.Err)
		}
		rec := readRecording(t, r.order.Output)
		// cutime and cstime of the shell: fields 16 and 17, 1/100 s
		stat := r.stderr.String()
		f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
		var ticks, more int
		fmt.Sscan(f[13], &ticks)
		fmt.Sscan(f[14], &more)
		var sum float64
		for _, s := range rec.samples {
			sum += float64(s.Period)
		}
		within(t, fmt.Sprintf("seconds sampled with jitter %v", jitter), sum/1e9, float64(ticks+more)/100, 0.08+0.1*jitter)
	}
}

// With jitter the ticks of a program's own thread do not keep one distance.
func TestJitterSpreads(t *testing.T) {
	common := map[float64]float64{}
	for _, jitter := range []float64{0, 0.5} {
		o := command(program(t, "calls"), "300000")
		o.Jitter, o.Freq = jitter, 2000
		_, rec := record(t, o)
		gaps, n := map[uint64]int{}, 0
		for i, s := range rec.samples[1:] {
			if gap := s.Time - rec.samples[i].Time; gap < 1_200_000 {
				gaps[gap/20_000]++
				n++
			}
		}
		most := 0
		for _, k := range gaps {
			most = max(most, k)
		}
		common[jitter] = float64(most) / float64(n)
	}
	if common[0.5] > 0.4 || common[0.5] > common[0]*0.8 {
		t.Errorf("share of the commonest 20 us among intervals: %.2f without jitter, %.2f with 50 %%", common[0], common[0.5])
	}
}

// Calls are counted in every thread and child, and forks go on working.
func TestCountCalls(t *testing.T) {
	needRoot(t)
	o := command(program(t, "many"), "4", "3", "2000")
	o.CountCalls = []string{"work"}
	out, rec := record(t, o)
	if out.Status != 0 {
		t.Fatalf("the program failed: status %d", out.Status)
	}
	type key struct {
		tid int32
		id  uint64
	}
	last := map[key]uint64{}
	for _, s := range rec.samples {
		if len(s.Counters) != 2 {
			t.Fatalf("a sample has %d counters, want 2", len(s.Counters))
		}
		last[key{s.TID, s.ID}] = s.Counters[1].Value
	}
	var sum uint64
	for _, v := range last {
		sum += v
	}
	// What is called behind the last sample of a thread is not seen.
	if want := uint64(7 * 2000); sum > want || sum < want*97/100 {
		t.Errorf("%d calls counted, want %d", sum, want)
	}
	if b, _ := os.ReadFile("/sys/kernel/tracing/uprobe_events"); strings.Contains(string(b), probeGroup+fmt.Sprint(os.Getpid())) {
		t.Errorf("probes were left behind:\n%s", b)
	}
}

// Counter-based sampling takes the calls as they come: half of them from
// often, which has a tenth of the time.
func TestCounterBasedSampling(t *testing.T) {
	needRoot(t)
	o := command(program(t, "calls"), "150000")
	o.CountCalls, o.CBS, o.UserOnly = []string{"work"}, &CBS{Samples: 8, Stride: 5}, true
	_, rec := record(t, o)
	ticks, calls, by := 0, 0, map[uint64]int{}
	for _, s := range rec.samples {
		if !strings.Contains(s.Event.Name, "work") {
			ticks++
			continue
		}
		calls++
		// At its first instruction the function has no frame: the return address lies
		// on top of the stack.
		if len(s.StackUser) >= 8 {
			by[nativeU64(s.StackUser)]++
		}
	}
	if ticks < 20 || calls > 8*ticks || calls < 8*(ticks-4) {
		t.Fatalf("%d ticks and %d calls, want 8 calls a tick", ticks, calls)
	}
	if len(by) != 2 {
		t.Fatalf("calls from %d places, want 2: %v", len(by), by)
	}
	for _, n := range by {
		within(t, "share of one caller", float64(n)/float64(calls), 0.5, 0.2)
	}
}

func TestSelfTuning(t *testing.T) {
	needRoot(t)
	tune := DefaultTune()
	tune.Every = 100
	o := command(program(t, "many"), "1", "0", "20000") // work takes about 40 us: at 1 ms no call is seen twice
	o.Tune, o.Freq = &tune, 100_000
	if m := sysctl("perf_event_max_sample_rate"); m != 0 {
		o.Freq = min(o.Freq, m)
	}
	out, rec := record(t, o)
	if out.Counts.PeriodChange == 0 || out.Counts.FinalPeriod <= 1e9/o.Freq {
		t.Errorf("the period was changed %d times, to %d ns", out.Counts.PeriodChange, out.Counts.FinalPeriod)
	}
	// Samples show the period they were taken with: the first times a power of two.
	periods := perSample(rec, func(s *perfdata.Sample) uint64 { return s.Period })
	if len(periods) < 2 {
		t.Errorf("periods %v, want several", periods)
	}
	for p := range periods {
		for p > 1e9/o.Freq && p%2 == 0 {
			p /= 2
		}
		if p != 1e9/o.Freq {
			t.Errorf("periods %v, want %d times powers of 2", periods, 1e9/o.Freq)
		}
	}
}

func TestRetune(t *testing.T) {
	tune := DefaultTune()
	tune.Min, tune.Max = 100, 1000
	for _, c := range []struct{ period, share, want float64 }{
		{400, 0.005, 200}, {400, 0.01, 400}, {400, 0.1, 400}, {400, 0.15, 400}, {400, 0.16, 800},
		{150, 0, 100}, {100, 0, 100}, {800, 1, 1000}, {1000, 1, 1000},
	} {
		if got := Retune(tune, c.period, c.share); got != c.want {
			t.Errorf("period %v, %v repeated: %v, want %v", c.period, c.share, got, c.want)
		}
	}
}
