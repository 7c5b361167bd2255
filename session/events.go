package session

import "github.com/perfcorrect/perfcorrect/perfdata"

// eventIndex finds events by the ids of their instances. In a pipe, events and
// ids are still being declared while records come.
type eventIndex struct {
	ids   map[uint64]*perfdata.Event
	known int // ids indexed
}

func (x *eventIndex) byID(meta *perfdata.Meta, id uint64) *perfdata.Event {
	if e := x.ids[id]; e != nil {
		return e
	}
	n := 0
	for _, e := range meta.Events {
		n += len(e.IDs)
	}
	if n == x.known {
		return nil
	}
	x.known = n
	x.ids = make(map[uint64]*perfdata.Event, n)
	for _, e := range meta.Events {
		for _, id := range e.IDs {
			x.ids[id] = e
		}
	}
	return x.ids[id]
}

// layout returns how a tracepoint's samples are laid out.
func (s *Session) layout(e *perfdata.Event) *layout {
	for len(s.layouts) <= e.Index {
		s.layouts = append(s.layouts, nil)
	}
	if s.layouts[e.Index] == nil {
		l := layoutOf(e, s.source.Meta().TracingData)
		s.layouts[e.Index] = &l
	}
	return s.layouts[e.Index]
}
