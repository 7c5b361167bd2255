package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// bar is the progress bar: on standard error if that is a terminal, from the
// first second of work on.
type bar struct {
	w       io.Writer
	started time.Time
	next    time.Time
	shown   int // columns to wipe
}

const (
	barAfter = time.Second
	barEvery = 100 * time.Millisecond
	barWidth = 30
)

// startBar returns nil, on which all methods may be called, if nobody would
// see it.
func (v *voice) startBar() *bar {
	f, ok := v.w.(*os.File)
	if v.quiet || !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	now := time.Now()
	v.bar = &bar{w: v.w, started: now, next: now.Add(barAfter)}
	return v.bar
}

func (v *voice) stopBar() {
	v.bar.wipe()
	v.bar = nil
}

// update shows that done of total bytes were worked on; a total of 0 is
// unknown. It is cheap enough to be called for every few thousand records.
func (b *bar) update(what string, done, total int64) {
	if b == nil {
		return
	}
	now := time.Now()
	if now.Before(b.next) {
		return
	}
	b.next = now.Add(barEvery)
	text := barText(what, done, total, now.Sub(b.started))
	b.wipe()
	b.shown = len(text)
	io.WriteString(b.w, text)
}

// barText is one state of the bar, without the carriage return.
func barText(what string, done, total int64, elapsed time.Duration) string {
	if total <= 0 {
		return fmt.Sprintf("%s %.1f MiB, %.0f s", what, float64(done)/(1<<20), elapsed.Seconds())
	}
	share := min(float64(done)/float64(total), 1)
	full := int(share * barWidth)
	text := fmt.Sprintf("%s [%s%s] %3.0f%%", what,
		strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), 100*share)
	if share > 0.02 && share < 1 {
		left := time.Duration(float64(elapsed) * (1 - share) / share)
		text += fmt.Sprintf(" %.0f s left", left.Seconds())
	}
	return text
}

func (b *bar) wipe() {
	if b == nil || b.shown == 0 {
		return
	}
	io.WriteString(b.w, "\r"+strings.Repeat(" ", b.shown)+"\r")
	b.shown = 0
}
