package record

import (
	"fmt"
	"strings"
)

// Spec is one event as written on the command line: perf's notation, taken
// apart but not yet looked up.
type Spec struct {
	Text      string // as written, without modifiers
	PMU       string // "cpu" of "cpu/event=0xc4/", else ""
	Terms     []Term // of a PMU event
	Name      string // of any other: "cycles", "r1c4", "sched:sched_switch"
	Modifiers string // "u", "ppp", with those of the group
}

// Term is "key=value" or "key" in the slashes of a PMU event.
type Term struct{ Key, Value string }

// GroupSpec is one event, or several in braces that count together.
type GroupSpec struct {
	Events []Spec
	Read   bool // :S: the leader samples and reads the others
	Braces bool
}

// ParseSpecs reads perf's -e: events and {groups}, separated by commas.
func ParseSpecs(text string) ([]GroupSpec, error) {
	p := &specParser{text: text}
	var groups []GroupSpec
	for {
		g, err := p.group()
		if err != nil {
			return nil, fmt.Errorf("event %q: %w", text, err)
		}
		groups = append(groups, g)
		if p.at == len(text) {
			return groups, nil
		}
		if !p.eat(',') {
			return nil, fmt.Errorf("event %q: unexpected %q at position %d", text, text[p.at:], p.at)
		}
	}
}

type specParser struct {
	text string
	at   int
}

func (p *specParser) eat(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *specParser) group() (GroupSpec, error) {
	// A group may have a name before its brace; nobody reads it.
	if i := strings.IndexAny(p.text[p.at:], "{,:/"); i >= 0 && p.text[p.at+i] == '{' {
		p.at += i
	}
	if !p.eat('{') {
		s, err := p.event()
		return GroupSpec{Events: []Spec{s}, Read: strings.Contains(s.Modifiers, "S")}, err
	}
	g := GroupSpec{Braces: true}
	for {
		s, err := p.event()
		if err != nil {
			return g, err
		}
		g.Events = append(g.Events, s)
		if p.eat('}') {
			break
		}
		if !p.eat(',') {
			return g, fmt.Errorf("the group is not closed with }")
		}
	}
	mods := ""
	if p.eat(':') {
		mods = p.until(",")
	}
	for i := range g.Events {
		s := &g.Events[i]
		if err := checkModifiers(s.Modifiers + mods); err != nil {
			return g, err
		}
		s.Modifiers += mods
		g.Read = g.Read || strings.Contains(s.Modifiers, "S")
	}
	return g, nil
}

// until takes everything before one of the bytes, or the rest.
func (p *specParser) until(stop string) string {
	rest := p.text[p.at:]
	if i := strings.IndexAny(rest, stop); i >= 0 {
		rest = rest[:i]
	}
	p.at += len(rest)
	return rest
}

func (p *specParser) event() (Spec, error) {
	if strings.HasPrefix(p.text[p.at:], "mem:") { // mem:ADDRESS/LENGTH:ACCESS
		text := p.until(",}")
		return Spec{Text: text, Name: text}, nil
	}
	head := p.until("/,{}")
	if !p.eat('/') {
		return named(head)
	}
	terms := p.until("/")
	if !p.eat('/') {
		return Spec{}, fmt.Errorf("%s/ is not closed with /", head)
	}
	p.eat(':') // perf takes cpu/.../u and cpu/.../:u
	s := Spec{PMU: head, Modifiers: p.until(",}"), Text: head + "/" + terms + "/"}
	for t := range strings.SplitSeq(terms, ",") {
		if t == "" {
			continue
		}
		key, value, _ := strings.Cut(t, "=")
		s.Terms = append(s.Terms, Term{key, value})
	}
	return s, checkModifiers(s.Modifiers)
}

// named takes modifiers off a name. A colon is also part of the names of
// tracepoints (sched:sched_switch) and breakpoints, and everything behind a
// second one is modifiers.
func named(text string) (Spec, error) {
	if text == "" {
		return Spec{}, fmt.Errorf("a name is missing")
	}
	s := Spec{Text: text, Name: text}
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return s, nil
	}
	head, mods := text[:i], text[i+1:]
	if strings.Trim(mods, knownModifiers) != "" && !strings.Contains(head, ":") {
		return s, nil // sched:sched_switch
	}
	s.Name, s.Text, s.Modifiers = head, head, mods
	return s, checkModifiers(mods)
}

const knownModifiers = "ukhpPSGHIDeW"

func checkModifiers(mods string) error {
	for i, c := range mods {
		if !strings.ContainsRune(knownModifiers, c) {
			return fmt.Errorf("unknown modifier %q: known are %s", mods[i:i+1], knownModifiers)
		}
	}
	if strings.Count(mods, "p") > 3 {
		return fmt.Errorf("modifier p stands at most three times")
	}
	return nil
}
