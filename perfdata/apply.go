package perfdata

import (
	"fmt"
	"io"
)

// applies reports whether a record tells about the recording, so that it goes
// to Meta and is not delivered.
func applies(t RecordType) bool {
	switch t {
	case TypeHeaderAttr, TypeHeaderEventType, TypeHeaderTracingData, TypeHeaderBuildID, TypeHeaderFeature,
		TypeEventUpdate, TypeIDIndex, TypeFinishedInit:
		return true
	}
	return false
}

// apply puts the content of such a record into Meta; false if it is malformed.
func (r *Reader) apply(h rawHeader, raw []byte) bool {
	m, big := r.meta, r.dec.big
	switch h.typ {
	case TypeHeaderAttr:
		a, ids, ok := decodeHeaderAttr(raw, big)
		if ok {
			r.addEvent(a, ids)
			m.linkEvents(r.declare)
		}
		return ok
	case TypeHeaderFeature:
		return r.applyFeature(raw)
	case TypeHeaderBuildID:
		return m.addBuildID(raw, big)
	case TypeHeaderTracingData:
		if len(raw) < headerSize+4 {
			return false
		}
		n := uint64(load32(raw[headerSize:], big))
		body := raw[headerSize+4:]
		if behind := raw[h.size:]; len(behind) > 0 {
			body = behind
		}
		m.setTracingData(body[:min(n, uint64(len(body)))])
		m.linkEvents(r.declare)
		return n <= uint64(len(body))
	case TypeEventUpdate:
		return m.updateEvent(raw, big, r.eventOf)
	case TypeIDIndex:
		return r.applyIDIndex(raw)
	}
	return true // EVENT_TYPE: names of events as of 2010; FINISHED_INIT: nothing
}

func (r *Reader) applyFeature(raw []byte) bool {
	c := &cursor{b: raw[headerSize:], big: r.dec.big}
	id := c.u64()
	if c.bad || id >= featureBits {
		return false
	}
	if len(c.b) == 0 {
		return true // the end mark, HEADER_LAST_FEATURE
	}
	ok := r.meta.decodeFeature(FeatureID(id), c.b, r.dec.big)
	switch FeatureID(id) {
	case FeatureEventDesc, FeatureGroupDesc, FeaturePMUMappings, FeatureTracingData, featureSimpleperfMeta:
		r.meta.linkEvents(r.declare)
	}
	return ok
}

// applyIDIndex reads perf_record_id_index. Its idx counts mmaps, not events.
func (r *Reader) applyIDIndex(raw []byte) bool {
	c := &cursor{b: raw[headerSize:], big: r.dec.big}
	n := c.u64()
	if c.bad || n > uint64(len(c.b))/32 {
		return false
	}
	for range n {
		id := c.u64()
		c.u64()
		r.meta.IDs[id] = Instance{CPU: int32(c.u64()), TID: int32(c.u64())}
	}
	return true
}

func (r *Reader) addEvent(a Attr, ids []uint64) {
	ev := &Event{Attr: a, IDs: ids, Index: len(r.meta.Events)}
	r.meta.Events = append(r.meta.Events, ev)
	r.dec.table.add(ev)
}

func (r *Reader) declare(id uint64, index int) { r.dec.table.declare(id, index) }

// eventOf returns the event with the id, the only event if there is one.
func (r *Reader) eventOf(id uint64) *Event {
	if e := r.dec.table.byID[id]; e != nil {
		return e.ev
	}
	if len(r.meta.Events) == 1 {
		return r.meta.Events[0]
	}
	return nil
}

// readSections reads attrs and features of a file.
func (r *Reader) readSections(f io.ReaderAt, size int64, h *fileHeader) error {
	if err := r.readAttrs(f, size, h); err != nil {
		return err
	}
	if h.data.size != 0 {
		r.readFeatures(f, size, h)
	}
	r.meta.linkEvents(r.declare)
	// The pump finds times with the same events.
	for _, ev := range r.meta.Events {
		r.pump.table.add(ev)
	}
	return nil
}

// readAttrs reads the attr section: entries of attrSize bytes, the last 16 of
// which say where the ids are.
func (r *Reader) readAttrs(f io.ReaderAt, size int64, h *fileHeader) error {
	bad := func(off uint64, format string, args ...any) error {
		return &FormatError{r.meta.Path, int64(min(off, 1<<62)), fmt.Sprintf(format, args...)}
	}
	if h.attrSize < attrSizeVer0+16 || h.attrSize > 1<<16 {
		return bad(16, "attr entries of %d bytes, expected %d or more", h.attrSize, attrSizeVer0+16)
	}
	b, ok := readAt(f, size, h.attrs)
	if !ok {
		return bad(h.attrs.off, "the attrs (%d bytes) end behind the end of the file (%d bytes)", h.attrs.size, size)
	}
	if uint64(len(b)) < h.attrSize {
		return bad(h.attrs.off, "the recording has no event: %d bytes of attrs", len(b))
	}
	at := h.attrs.off
	for ; uint64(len(b)) >= h.attrSize; b, at = b[h.attrSize:], at+h.attrSize {
		a, ok := decodeAttr(b[:h.attrSize-16], r.dec.big)
		if !ok {
			return bad(at, "attr %d has size %d", len(r.meta.Events), load32(b[4:], r.dec.big))
		}
		c := &cursor{b: b[h.attrSize-16 : h.attrSize], big: r.dec.big}
		sec := section{c.u64(), c.u64()}
		raw, ok := readAt(f, size, sec)
		if !ok {
			r.warn("offset %d: the ids of event %d (%d bytes at %d) lie outside the file",
				at+h.attrSize-16, len(r.meta.Events), sec.size, sec.off)
		}
		ids := cursor{b: raw, big: r.dec.big}
		r.addEvent(a, ids.words(nil, uint64(len(raw))/8))
	}
	if len(b) > 0 {
		r.warn("offset %d: %d stray bytes behind the attrs", at, len(b))
	}
	return nil
}

// readFeatures reads the feature sections, whose table follows the data.
func (r *Reader) readFeatures(f io.ReaderAt, size int64, h *fileHeader) {
	at := h.data.off + h.data.size
	if at < h.data.off {
		r.warn("offset 40: the data section (%d bytes at %d) has no end", h.data.size, h.data.off)
		return
	}
	if at > uint64(size) {
		return // the data is cut too; that is said already
	}
	table, ok := readAt(f, size, section{at, uint64(len(h.features)) * 16})
	if !ok {
		r.warn("offset %d: the table of %d feature sections is cut after %d bytes", at, len(h.features), len(table))
	}
	c := &cursor{b: table, big: r.dec.big}
	for _, id := range h.features {
		sec := section{c.u64(), c.u64()}
		if c.bad {
			return
		}
		b, ok := readAt(f, size, sec)
		if !ok {
			r.warn("offset %d: section %v (%d bytes at %d) lies outside the file", at, id, sec.size, sec.off)
			continue
		}
		if !r.meta.decodeFeature(id, b, r.dec.big) {
			r.warn("offset %d: section %v (%d bytes) contradicts itself", sec.off, id, sec.size)
		}
	}
}
