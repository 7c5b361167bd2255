package record

// DefaultJitter is the share by which the period varies if nothing is said.
const DefaultJitter = 0.1

// strategies are those the options ask for.
func (r *recorder) strategies() []strategy {
	var list []strategy
	if r.CBS != nil {
		list = append(list, &cbs{CBS: *r.CBS})
	}
	var t *tuner
	if r.Tune != nil {
		t = &tuner{Tune: *r.Tune}
		list = append(list, t)
	}
	if r.Jitter > 0 && r.CBS == nil {
		list = append(list, &jitter{share: r.Jitter})
	}
	return list
}

// clocks are the instances of the event that sets the pace.
func (r *recorder) clocks() []*instance {
	var list []*instance
	for _, in := range r.instances {
		if in.event.paces(r.Plan) {
			list = append(list, in)
		}
	}
	return list
}

// paces reports whether the event samples by time or work done: not each
// execution of something, and not calls between two ticks.
func (ev *Event) paces(p *Plan) bool {
	a := &ev.Attr
	return a.SamplePeriod > 1 && ev.Uprobes == nil && !ev.isOneOf(p.Calls) && ev.Period == 0
}

// firstPeriod is the event's period when it is opened, 0 if the kernel keeps
// to a frequency by itself.
func (ev *Event) firstPeriod() uint64 {
	a := &ev.Attr
	switch {
	case !a.Freq():
		return a.SamplePeriod
	case ev.isTimer():
		return 1e9 / a.SamplePeriod // perf_swevent_init_hrtimer in kernel/events/core.c
	}
	return 0
}

// setRate makes an instance sample `scale` times as often as it was opened for.
// Events that follow a frequency are given another, others another period.
func (r *recorder) setRate(in *instance, scale float64) error {
	ev := in.event
	first := ev.firstPeriod()
	if first == 0 {
		return setPeriod(in.fd, max(1, uint64(float64(ev.Attr.SamplePeriod)*scale)))
	}
	p := max(1, uint64(float64(first)/scale))
	if err := setPeriod(in.fd, p); err != nil {
		return err
	}
	if ev.isTimer() && r.periods != nil {
		r.periods[in.id] = p
	}
	return nil
}
