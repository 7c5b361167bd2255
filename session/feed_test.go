package session

import (
	"encoding/binary"
	"iter"
	"slices"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

// feed is a Source made of records written down in a test.
type feed struct {
	meta    perfdata.Meta
	records []perfdata.Record
}

func (f *feed) Meta() *perfdata.Meta { return &f.meta }

func (f *feed) Records() iter.Seq2[perfdata.Record, error] {
	return func(yield func(perfdata.Record, error) bool) {
		for _, r := range f.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// newFeed has one event, opened on threads with inherit.
func newFeed(records ...perfdata.Record) *feed {
	e := &perfdata.Event{Name: "cpu-clock", Attr: perfdata.Attr{
		Type: perfdata.TypeSoftware, SamplePeriod: 1000, Flags: perfdata.FlagInherit,
	}}
	f := &feed{records: records}
	f.meta = perfdata.Meta{ByteOrder: binary.LittleEndian, Events: []*perfdata.Event{e}, Cmdline: []string{"perf", "record", "./a"}}
	for _, r := range records {
		if s, ok := r.(*perfdata.Sample); ok && s.Event == nil {
			s.Event = e
		}
	}
	return f
}

// at stamps a record with time and thread.
func at[R perfdata.Record](time uint64, pid, tid int32, r R) R {
	c := r.Header()
	c.Time, c.PID, c.TID = time, pid, tid
	c.Has |= perfdata.FieldTime | perfdata.FieldTID
	return r
}

func on[R perfdata.Record](cpu uint32, r R) R {
	c := r.Header()
	c.CPU = cpu
	c.Has |= perfdata.FieldCPU
	return r
}

func mmap(pid int32, addr, length, pgoff uint64, name string) *perfdata.Mmap {
	m := &perfdata.Mmap{MapPID: pid, MapTID: pid, Addr: addr, Len: length, Pgoff: pgoff, Filename: name}
	m.Type, m.Misc = perfdata.TypeMmap2, perfdata.MiscUser
	return m
}

func comm(pid, tid int32, name string) *perfdata.Comm {
	return &perfdata.Comm{CommPID: pid, CommTID: tid, Comm: name}
}

func execComm(pid int32, name string) *perfdata.Comm {
	c := comm(pid, pid, name)
	c.Misc = perfdata.MiscCommExec
	return c
}

func fork(ppid, ptid, pid, tid int32) *perfdata.Task {
	r := &perfdata.Task{TaskPID: pid, TaskPPID: ppid, TaskTID: tid, TaskPTID: ptid}
	r.Type = perfdata.TypeFork
	return r
}

func exit(pid, tid int32) *perfdata.Task {
	r := &perfdata.Task{TaskPID: pid, TaskTID: tid}
	r.Type = perfdata.TypeExit
	return r
}

// tick is a sample in user mode at ip.
func tick(ip uint64, chain ...uint64) *perfdata.Sample {
	s := &perfdata.Sample{IP: ip, Period: 1000}
	s.Misc, s.Has = perfdata.MiscUser, perfdata.FieldIP
	if len(chain) > 0 {
		s.Has |= perfdata.FieldCallchain
		s.Callchain = append([]uint64{perfdata.ContextUser, ip}, chain...)
	}
	return s
}

func kernelTick(ip uint64, chain ...uint64) *perfdata.Sample {
	s := tick(ip)
	s.Misc = perfdata.MiscKernel
	if len(chain) > 0 {
		s.Has |= perfdata.FieldCallchain
		s.Callchain = append([]uint64{perfdata.ContextKernel, ip}, chain...)
	}
	return s
}

// kept is what tests keep of a sample.
type kept struct {
	comm     string
	pid, tid int32
	addrs    []image.Addr
	interval *Interval
}

// run returns everything that came out.
func run(t testing.TB, f *feed) ([]kept, *Session) {
	t.Helper()
	store := image.NewStore(image.Options{})
	s := New(f, store)
	var all []kept
	each(t, s, func(smp *Sample) {
		k := kept{comm: smp.Thread.Comm, pid: smp.Thread.PID, tid: smp.Thread.TID}
		for _, l := range smp.Stack {
			k.addrs = append(k.addrs, store.Addr(l))
		}
		if smp.Interval != nil {
			v := *smp.Interval
			v.Counts = slices.Clone(v.Counts)
			k.interval = &v
		}
		all = append(all, k)
	})
	return all, s
}

// leaf is the path and offset of a sample's instruction pointer.
func (k *kept) leaf() (string, uint64) { return k.addrs[0].Image.Path, k.addrs[0].Offset }

// expectLeaves compares the leaf of each sample with "path" and offset pairs.
func expectLeaves(t *testing.T, got []kept, want ...any) {
	t.Helper()
	if len(got)*2 != len(want) {
		t.Fatalf("%d samples, want %d", len(got), len(want)/2)
	}
	for i := range got {
		path, off := got[i].leaf()
		if path != want[2*i].(string) || off != uint64(want[2*i+1].(int)) {
			t.Errorf("sample %d is at %s+%#x, want %v+%#x", i, path, off, want[2*i], want[2*i+1])
		}
	}
}
