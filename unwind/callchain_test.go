package unwind

import (
	"slices"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

const (
	kernelIP = 0xffffffff81000010
	kernelRA = 0xffffffff81000020
	userIP   = 0x401000
	userRA   = 0x402000
	libRA    = 0x7f1234567890
)

func TestCallchain(t *testing.T) {
	ip := func(a uint64, m Mode) Frame { return Frame{Addr: a, Mode: m} }
	ret := func(a uint64, m Mode) Frame { return Frame{Addr: a, Mode: m, Return: true} }
	tests := []struct {
		name    string
		misc    perfdata.Misc
		chain   []uint64
		max     uint16
		want    []Frame
		outcome Outcome
	}{
		{
			name: "no chain", misc: perfdata.MiscUser,
			want: []Frame{ip(userIP, ModeUser)}, outcome: Empty,
		},
		{
			name: "markers only", misc: perfdata.MiscUser, chain: []uint64{perfdata.ContextUser},
			want: []Frame{ip(userIP, ModeUser)}, outcome: Empty,
		},
		{
			name: "user", misc: perfdata.MiscUser, chain: []uint64{perfdata.ContextUser, userIP, userRA, libRA},
			want: []Frame{ip(userIP, ModeUser), ret(userRA, ModeUser), ret(libRA, ModeUser)},
		},
		{
			name: "without markers", misc: perfdata.MiscUser, chain: []uint64{userIP, userRA},
			want: []Frame{ip(userIP, ModeUser), ret(userRA, ModeUser)},
		},
		{
			name: "kernel and user: the user ip is not a return address", misc: perfdata.MiscKernel,
			chain: []uint64{perfdata.ContextKernel, kernelIP, kernelRA, perfdata.ContextUser, userIP, userRA},
			want:  []Frame{ip(kernelIP, ModeKernel), ret(kernelRA, ModeKernel), ip(userIP, ModeUser), ret(userRA, ModeUser)},
		},
		{
			name: "guest and hypervisor", misc: perfdata.MiscGuestKernel,
			chain: []uint64{
				perfdata.ContextHV, 0x10, perfdata.ContextGuestKernel, kernelIP, perfdata.ContextGuestUser, userIP,
				perfdata.ContextGuest, userRA,
			},
			want: []Frame{ip(0x10, ModeHypervisor), ip(kernelIP, ModeGuestKernel), ip(userIP, ModeGuestUser), ip(userRA, ModeGuestUser)},
		},
		{
			name: "the chain's first entry is the leaf, whatever the ip", misc: perfdata.MiscUser,
			chain: []uint64{perfdata.ContextUser, userIP + 4, userRA},
			want:  []Frame{ip(userIP+4, ModeUser), ret(userRA, ModeUser)},
		},
		{
			name: "zero return address", misc: perfdata.MiscUser, chain: []uint64{perfdata.ContextUser, userIP, 0},
			want: []Frame{ip(userIP, ModeUser), ret(0, ModeUser)}, outcome: Corrupt,
		},
		{
			name: "text, kernel address in a user chain, first page", misc: perfdata.MiscUser,
			chain: []uint64{perfdata.ContextUser, userIP, 0x2f6e69622f727375, kernelRA, 0xfff, userRA},
			want: []Frame{
				ip(userIP, ModeUser), ret(0, ModeUser), ret(0, ModeUser), ret(0, ModeUser), ret(userRA, ModeUser),
			},
			outcome: Corrupt,
		},
		{
			name: "powerpc kernel addresses are plausible", misc: perfdata.MiscKernel,
			chain: []uint64{perfdata.ContextKernel, 0xc000000000001000, 0xc000000000002000, 0xd000000000003000},
			want:  []Frame{ip(0xc000000000001000, ModeKernel), ret(0xc000000000002000, ModeKernel), ret(0xd000000000003000, ModeKernel)},
		},
		{
			name: "jump to null keeps its caller", misc: perfdata.MiscUser, chain: []uint64{perfdata.ContextUser, 0, userRA},
			want: []Frame{ip(0, ModeUser), ret(userRA, ModeUser)},
		},
		{
			name: "cut at sample_max_stack, markers not counted", misc: perfdata.MiscKernel, max: 3,
			chain: []uint64{perfdata.ContextKernel, kernelIP, perfdata.ContextUser, userIP, userRA},
			want:  []Frame{ip(kernelIP, ModeKernel), ip(userIP, ModeUser), ret(userRA, ModeUser)}, outcome: Truncated,
		},
		{
			name: "user part deferred", misc: perfdata.MiscKernel,
			chain: []uint64{perfdata.ContextKernel, kernelIP, perfdata.ContextUserDeferred, 77},
			want:  []Frame{ip(kernelIP, ModeKernel)}, outcome: Deferred,
		},
		{
			name: "unknown marker", misc: perfdata.MiscUser, chain: []uint64{^uint64(99), perfdata.ContextUser, userIP},
			want: []Frame{ip(userIP, ModeUser)},
		},
	}
	for _, c := range tests {
		s := &perfdata.Sample{Callchain: c.chain, IP: userIP}
		s.Has, s.Misc = perfdata.FieldIP, c.misc
		s.Event = &perfdata.Event{Attr: perfdata.Attr{SampleMaxStack: c.max}}
		before := Frame{Addr: 1}
		got, outcome := Callchain([]Frame{before}, s)
		if got[0] != before {
			t.Errorf("%s: what was there is gone", c.name)
		}
		if !slices.Equal(got[1:], c.want) || outcome != c.outcome {
			t.Errorf("%s:\ngot  %v, %v\nwant %v, %v", c.name, got[1:], outcome, c.want, c.outcome)
		}
	}
}

func TestCallchainDefaultLimit(t *testing.T) {
	s := &perfdata.Sample{Callchain: []uint64{perfdata.ContextUser}}
	s.Misc = perfdata.MiscUser
	for i := range DefaultMaxStack {
		if _, o := Callchain(nil, s); i > 0 && o != EndOfStack {
			t.Fatalf("%d frames: %v", i, o)
		}
		s.Callchain = append(s.Callchain, userIP)
	}
	if f, o := Callchain(nil, s); o != Truncated || len(f) != 127 {
		t.Errorf("%d frames: %v", len(f), o)
	}
}

func TestNoIPNoChain(t *testing.T) {
	if f, o := Callchain(nil, &perfdata.Sample{}); len(f) != 0 || o != EndOfStack {
		t.Errorf("%v, %v", f, o)
	}
}

func TestDeferredCookie(t *testing.T) {
	for _, c := range []struct {
		chain []uint64
		want  uint64
		ok    bool
	}{
		{nil, 0, false},
		{[]uint64{perfdata.ContextUserDeferred}, 0, false},
		{[]uint64{perfdata.ContextKernel, kernelIP, perfdata.ContextUserDeferred, 5}, 5, true},
		{[]uint64{perfdata.ContextUser, userIP}, 0, false},
	} {
		got, ok := DeferredCookie(&perfdata.Sample{Callchain: c.chain})
		if got != c.want || ok != c.ok {
			t.Errorf("%x: %d, %v", c.chain, got, ok)
		}
	}
}

func TestOutcomeNames(t *testing.T) {
	seen := map[string]bool{}
	for o := range NumOutcomes {
		if n := o.String(); n == "" || seen[n] {
			t.Errorf("outcome %d is called %q", o, n)
		}
		seen[o.String()] = true
	}
}

// BenchmarkCallchain walks a chain as deep as those of real programs.
func BenchmarkCallchain(b *testing.B) {
	s := &perfdata.Sample{Callchain: []uint64{perfdata.ContextKernel, kernelIP, perfdata.ContextUser, userIP}}
	for i := range uint64(20) {
		s.Callchain = append(s.Callchain, libRA+i*16)
	}
	var dst []Frame
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = Callchain(dst[:0], s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/frame")
}
