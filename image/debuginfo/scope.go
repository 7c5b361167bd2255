package debuginfo

import (
	"cmp"
	"slices"
	"strings"
)

// scopeQueries ask for the namespaces and classes around functions. Entries
// do not say what is around them, so a unit is searched once for all of its.
type scopeQueries map[*unit][]scopeQuery

type scopeQuery struct {
	off uint64
	fn  *Function
}

func (q scopeQueries) ask(e entry, fn *Function) {
	q[e.u] = append(q[e.u], scopeQuery{e.off, fn})
}

func (q scopeQueries) answer() {
	for u, list := range q {
		slices.SortFunc(list, func(a, b scopeQuery) int { return cmp.Compare(a.off, b.off) })
		u.scopes(list)
		u.data = nil
	}
}

// scopes walks a unit to each of the entries asked for, in order.
func (u *unit) scopes(list []scopeQuery) {
	table := u.file.abbrevs(u.abbrev, u.encoding)
	if table == nil {
		return
	}
	var around []string
	c := u.at(u.die)
	start := c.off
	for !c.bad && c.left() > 0 && len(list) > 0 {
		off := u.off + uint64(c.off)
		for len(list) > 0 && list[0].off <= off {
			if list[0].off == off {
				list[0].fn.Scope = join(around)
			}
			list = list[1:]
		}
		code := c.uleb()
		if code == 0 {
			if len(around) <= 1 {
				break
			}
			around = around[:len(around)-1]
			continue
		}
		a := table.get(code)
		if a == nil || len(around) > maxDepth || len(list) == 0 {
			break
		}
		name, children := u.scopeEntry(&c, a, off, list[0].off)
		if children {
			around = append(around, name)
		}
	}
	u.file.spend(c.off - start + 1)
}

// scopeEntry reads an entry; it steps over its children if what is wanted is
// behind them.
func (u *unit) scopeEntry(c *cursor, a *abbrev, off, wanted uint64) (name string, children bool) {
	var text, signature value
	sibling := uint64(0)
	for _, s := range a.attrs {
		switch s.at {
		case attrName:
			text = c.value(s, u.encoding)
		case attrSignature:
			signature = c.value(s, u.encoding)
		case attrSibling:
			sibling = c.value(s, u.encoding).u
		default:
			c.skipForm(s.form, u.encoding)
		}
	}
	if c.bad || !a.children {
		return "", false
	}
	if sibling >= uint64(c.off) && sibling <= uint64(len(c.b)) && u.off+sibling <= wanted {
		c.off = int(sibling)
		return "", false
	}
	switch a.kind {
	case container, typ:
		if name = u.text(text); name == "" {
			name = u.signedName(signature)
		}
		if name == "" && a.tag == tagNamespace {
			name = "(anonymous namespace)"
		}
	case function:
		// A class inside a function is named by it too: "f(int)::A::m", for
		// which the parameters would be needed. The class is what matters.
	}
	return name, true
}

// signedName is the name of a type whose description is in a type unit.
func (u *unit) signedName(signature value) (name string) {
	if e := u.reference(signature); e.u != nil {
		e.attributes(func(at uint32, v value) {
			if at == attrName {
				name = e.u.text(v)
			}
		})
	}
	return name
}

// join writes the names around an entry, of which some are "".
func join(around []string) string {
	var b strings.Builder
	for _, n := range around {
		if n == "" || b.Len()+len(n) > maxString {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("::")
		}
		b.WriteString(n)
	}
	return b.String()
}
