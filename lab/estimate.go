package main

import (
	"bytes"
	"fmt"

	"github.com/perfcorrect/perfcorrect/accuracy"
	"github.com/perfcorrect/perfcorrect/correct"
	"github.com/perfcorrect/perfcorrect/formats"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// A method is a row of the tables: an estimator with its options.
type method struct {
	name string // in the tables
	use  string // of package correct
	opt  func(*correct.Options)
	// brief rows are in the tables of averages only.
	brief bool
}

// methods are the rows, in the order of the tables.
func methods() []method {
	return []method{
		{name: "none", use: "none"},
		{name: "density, no latency", use: "density", opt: func(o *correct.Options) { o.Latency = correct.LatencyOff }},
		{name: "density (Lee)", use: "density"},
		{name: "lee (density on LBR)", use: "lee"},
		{name: "flow: entry block", use: "flow", brief: true, opt: func(o *correct.Options) { o.Flow = correct.FlowEntry }},
		{name: "flow: site class, tree", use: "flow", brief: true, opt: func(o *correct.Options) { o.Flow = correct.FlowTree }},
		{name: "flow", use: "flow"},
		{name: "lbr", use: "lbr"},
	}
}

// estimator feeds a recording to several methods at once: reading is the
// larger part of the work.
type estimates struct {
	store   *image.Store
	methods []method
	est     []correct.Estimator
}

func estimate(file string, ms []method, store *image.Store) (*estimates, error) {
	r, err := perfdata.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	e := &estimates{store: store, methods: ms}
	for s, err := range session.New(r, store).Samples() {
		if err != nil {
			return nil, err
		}
		if e.est == nil {
			if err := e.make(r.Meta()); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		for _, est := range e.est {
			est.Add(s)
		}
	}
	if d := r.Stats().Damage; d != nil {
		return nil, fmt.Errorf("%s: damaged: %v", file, d)
	}
	if e.est == nil {
		return nil, fmt.Errorf("%s: no samples", file)
	}
	return e, nil
}

func (e *estimates) make(meta *perfdata.Meta) error {
	for _, m := range e.methods {
		opt := correct.Options{Meta: meta, Store: e.store}
		if m.opt != nil {
			m.opt(&opt)
		}
		est, err := correct.New(m.use, opt)
		if err != nil {
			return err
		}
		e.est = append(e.est, est)
	}
	return nil
}

// profile returns what method i found, read back from the file a user would
// get: the lab judges outputs, not inner states.
func (e *estimates) profile(i int, r *accuracy.Reader) (*accuracy.Profile, error) {
	res := e.est[i].Result()
	write, err := formats.Lookup("dcg", "jsonl")
	if err != nil {
		return nil, err
	}
	p := &formats.Profile{Store: e.store, Method: res.Method, Stacks: res.Stacks, DCG: res.DCG(e.store)}
	p.EventName, p.EventUnit = formats.EventType(res.Event)
	var b bytes.Buffer
	if err := write(&b, p); err != nil {
		return nil, err
	}
	return r.Read(&b, e.methods[i].name)
}
