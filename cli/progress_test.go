package cli

import (
	"strings"
	"testing"
	"time"
)

func TestBarText(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 100, time.Second, "reading [                              ]   0%"},
		{50, 100, 4 * time.Second, "reading [===============               ]  50% 4 s left"},
		{100, 100, 4 * time.Second, "reading [==============================] 100%"},
		{120, 100, 4 * time.Second, "reading [==============================] 100%"}, // it grew meanwhile
		{3 << 20, 0, 2 * time.Second, "reading 3.0 MiB, 2 s"},
	} {
		if got := barText("reading", c.done, c.total, c.elapsed); got != c.want {
			t.Errorf("%d of %d: got %q, want %q", c.done, c.total, got, c.want)
		}
	}
}

// TestBarTimes checks that the bar comes after a second, not too often, and
// makes way for a line of text.
func TestBarTimes(t *testing.T) {
	var out strings.Builder
	now := time.Now()
	b := &bar{w: &out, started: now, next: now.Add(barAfter)}
	v := &voice{w: &out, bar: b}
	b.update("reading", 1, 2)
	if out.Len() > 0 {
		t.Fatalf("shown at once: %q", out.String())
	}
	b.next = now
	b.update("reading", 1, 2)
	b.update("reading", 2, 2)
	if n := strings.Count(out.String(), "reading"); n != 1 {
		t.Errorf("shown %d times within a moment, want once: %q", n, out.String())
	}
	v.warn("something")
	blank := "\r" + strings.Repeat(" ", len(barText("reading", 1, 2, time.Second))) + "\r"
	if !strings.HasSuffix(out.String(), "\rperfcorrect: warning: something\n") || !strings.Contains(out.String(), blank[:20]) {
		t.Errorf("the bar is not wiped before a warning: %q", out.String())
	}
	var none *bar
	none.update("reading", 1, 2) // nobody sees it
	none.wipe()
}
