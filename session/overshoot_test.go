package session

import (
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// varied adds a tick of the group that tells its own period.
func (f *feed) varied(time, clock, period uint64) *perfdata.Sample {
	s := f.read(time, 1, 0, clock, 0)
	s.Has |= perfdata.FieldPeriod
	s.Period = period
	return s
}

func expectOvershoots(t *testing.T, f *feed, want ...uint64) {
	t.Helper()
	got, _ := run(t, f)
	for i, k := range got {
		if k.interval.Overshoot != want[i] {
			t.Errorf("tick %d: %d past its period, want %d", i, k.interval.Overshoot, want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d ticks, want %d", len(got), len(want))
	}
}

// TestOvershootOfRandomPeriods: periods 900, 1150, 1000, 820 end at 900, 2050,
// 3050, 3870.
func TestOvershootOfRandomPeriods(t *testing.T) {
	f := newGroup(0)
	f.varied(10, 907, 900)
	f.varied(20, 2050, 1150)
	f.varied(30, 3093, 1000)
	f.varied(40, 3871, 820)
	expectOvershoots(t, f, 7, 0, 43, 1)
}

// TestOvershootOfLatePhase: the clock starts 300 units into its first period.
// The first tick is taken for the end of it, the second shows that to have
// been 4 too late.
func TestOvershootOfLatePhase(t *testing.T) {
	f := newGroup(0)
	f.varied(10, 604, 900)   // due at 600
	f.varied(20, 1750, 1150) // due at 1750
	f.varied(30, 2780, 1000) // due at 2750
	expectOvershoots(t, f, 0, 0, 30)
}

// TestOvershootAfterLoss: the period of the tick at 3050 is not known, so the
// sum goes on from the tick after it.
func TestOvershootAfterLoss(t *testing.T) {
	f := newGroup(0)
	f.varied(10, 907, 900)
	f.varied(20, 2050, 1150)
	f.records = append(f.records, on(0, at(31, 1, 1, lost(1))))
	f.varied(40, 3870, 820)
	f.varied(50, 4881, 1000) // due at 4870
	expectOvershoots(t, f, 7, 0, 0, 11)
}

// TestOvershootOfMissedTick: a tick that nothing tells of.
func TestOvershootOfMissedTick(t *testing.T) {
	f := newGroup(0)
	f.varied(10, 907, 900)
	f.varied(40, 3870, 820)
	f.varied(50, 4881, 1000)
	expectOvershoots(t, f, 7, 0, 11)
}

// TestOvershootOfFixedPeriod: periods end at multiples of 1000, whatever was
// lost, also if samples tell the period.
func TestOvershootOfFixedPeriod(t *testing.T) {
	f := newGroup(0)
	f.varied(10, 1003, 1000)
	f.records = append(f.records, on(0, at(31, 1, 1, lost(1))))
	f.varied(40, 4020, 1000)
	expectOvershoots(t, f, 3, 20)
}

func TestNoOvershootOfFrequency(t *testing.T) {
	f := newGroup(perfdata.FlagFreq)
	f.varied(10, 907, 900)
	f.varied(20, 2057, 1150)
	expectOvershoots(t, f, 0, 0)
}
