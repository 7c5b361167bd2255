package perfdata

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// pbNode is one field of a text-proto message: a value or a message.
type pbNode struct {
	name, value string
	kids        []*pbNode
}

// parsePB reads the text form of a proto message, one field a line, as the
// C++ TextFormat printer writes it.
func parsePB(tb testing.TB, path string) *pbNode {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	root := &pbNode{}
	stack := []*pbNode{root}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 64<<20)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		top := stack[len(stack)-1]
		switch {
		case line == "":
		case line == "}":
			stack = stack[:len(stack)-1]
		case strings.HasSuffix(line, " {"):
			k := &pbNode{name: strings.TrimSuffix(line, " {")}
			top.kids = append(top.kids, k)
			stack = append(stack, k)
		default:
			name, value, ok := strings.Cut(line, ": ")
			if !ok {
				tb.Fatalf("%s:%d: %q", path, n, line)
			}
			top.kids = append(top.kids, &pbNode{name: name, value: value})
		}
	}
	if sc.Err() != nil || len(stack) != 1 {
		tb.Fatalf("%s: %v, depth %d", path, sc.Err(), len(stack))
	}
	return root
}

func (n *pbNode) all(name string) []*pbNode {
	var out []*pbNode
	for _, k := range n.kids {
		if k.name == name {
			out = append(out, k)
		}
	}
	return out
}

func (n *pbNode) get(path ...string) string {
	for _, name := range path {
		k := n.all(name)
		if len(k) == 0 {
			return ""
		}
		n = k[0]
	}
	return n.value
}

// unquote undoes C escapes, octal included.
func unquote(tb testing.TB, s string) string {
	tb.Helper()
	s = strings.TrimSuffix(strings.TrimPrefix(s, `"`), `"`)
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		if s[i] >= '0' && s[i] <= '7' {
			v, err := strconv.ParseUint(s[i:i+3], 8, 8)
			if err != nil {
				tb.Fatalf("%q: %v", s, err)
			}
			out = append(out, byte(v))
			i += 2
			continue
		}
		switch s[i] {
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		default:
			out = append(out, s[i])
		}
	}
	return string(out)
}

// flat is a message as path -> value; the n-th field of a name gets #n.
type flat map[string]string

func (f flat) add(n *pbNode, prefix string) {
	count := make(map[string]int)
	for _, k := range n.kids {
		path := fmt.Sprintf("%s%s#%d", prefix, k.name, count[k.name])
		count[k.name]++
		if len(k.kids) > 0 {
			f.add(k, path+".")
		} else {
			f[path] = k.value
		}
	}
}

func (f flat) set(path string, v any) { f[path] = fmt.Sprint(v) }

// Fields of the dump that are not in the recording, or computed by quipper.
func pbIgnored(path string) bool {
	for _, s := range []string{"md5", "root_path", "header#0.size", "trace_data", "time_cycles", "time_mask",
		"cap_user", "unparsed_binary"} {
		if strings.Contains(path, s) {
			return true
		}
	}
	return false
}

// asPB renders a record the way quipper names its fields.
func asPB(rec Record) flat {
	f := flat{}
	h := rec.Header()
	f.set("header#0.type#0", uint32(h.Type))
	f.set("header#0.misc#0", uint16(h.Misc))
	f.set("timestamp#0", h.Time)
	name := ""
	switch r := rec.(type) {
	case *Sample:
		pbSample(f, r)
		return f
	case *Mmap:
		name = "mmap_event#0."
		f.set(name+"pid#0", uint32(r.MapPID))
		f.set(name+"tid#0", uint32(r.MapTID))
		f.set(name+"start#0", r.Addr)
		f.set(name+"len#0", r.Len)
		f.set(name+"pgoff#0", r.Pgoff)
		f.set(name+"filename#0", r.Filename)
		if r.Type == TypeMmap2 {
			f.set(name+"maj#0", r.Maj)
			f.set(name+"min#0", r.Min)
			f.set(name+"ino#0", r.Ino)
			f.set(name+"ino_generation#0", r.InoGen)
			f.set(name+"prot#0", r.Prot)
			f.set(name+"flags#0", r.MapFlags)
		}
	case *Comm:
		name = "comm_event#0."
		f.set(name+"pid#0", uint32(r.CommPID))
		f.set(name+"tid#0", uint32(r.CommTID))
		f.set(name+"comm#0", r.Comm)
	case *Task:
		name = "fork_event#0."
		if r.Type == TypeExit {
			name = "exit_event#0."
		}
		f.set(name+"pid#0", uint32(r.TaskPID))
		f.set(name+"ppid#0", uint32(r.TaskPPID))
		f.set(name+"tid#0", uint32(r.TaskTID))
		f.set(name+"ptid#0", uint32(r.TaskPTID))
		f.set(name+"fork_time_ns#0", r.TaskTime)
	case *Throttle:
		name = "throttle_event#0."
		f.set(name+"time_ns#0", r.ThrottleTime)
		f.set(name+"id#0", r.ThrottleID)
		f.set(name+"stream_id#0", r.Stream)
	case *Switch:
		name = "context_switch_event#0."
		f.set(name+"is_out#0", r.Misc&MiscSwitchOut != 0)
		if r.Type == TypeSwitchCPUWide {
			f.set(name+"next_prev_pid#0", uint32(r.NextPrevPID))
			f.set(name+"next_prev_tid#0", uint32(r.NextPrevTID))
		}
	case *LostSamples:
		name = "lost_samples_event#0."
		f.set(name+"num_lost#0", r.Count)
	case *ItraceStart:
		name = "itrace_start_event#0."
		f.set(name+"pid#0", uint32(r.TracePID))
		f.set(name+"tid#0", uint32(r.TraceTID))
	case *Aux:
		name = "aux_event#0."
		f.set(name+"aux_offset#0", r.AuxOffset)
		f.set(name+"aux_size#0", r.AuxSize)
		f.set(name+"is_truncated#0", r.AuxFlags&1 != 0)
		f.set(name+"is_overwrite#0", r.AuxFlags&2 != 0)
		f.set(name+"is_partial#0", r.AuxFlags&4 != 0)
	case *Namespaces:
		name = "namespaces_event#0."
		f.set(name+"pid#0", uint32(r.NSPID))
		f.set(name+"tid#0", uint32(r.NSTID))
		for i, l := range r.Links {
			f.set(fmt.Sprintf("%slink_info#%d.dev#0", name, i), l.Dev)
			f.set(fmt.Sprintf("%slink_info#%d.ino#0", name, i), l.Ino)
		}
	default:
		return nil // records of perf, compared by number only
	}
	pbSampleInfo(f, name+"sample_info#0.", h)
	return f
}

func pbSampleInfo(f flat, name string, h *Common) {
	if h.Has&FieldTID != 0 {
		f.set(name+"pid#0", uint32(h.PID))
		f.set(name+"tid#0", uint32(h.TID))
	}
	if h.Has&FieldTime != 0 {
		f.set(name+"sample_time_ns#0", h.Time)
	}
	if h.Has&(FieldID|FieldIdentifier) != 0 {
		f.set(name+"id#0", h.ID)
	}
	if h.Has&FieldStreamID != 0 {
		f.set(name+"stream_id#0", h.StreamID)
	}
	if h.Has&FieldCPU != 0 {
		f.set(name+"cpu#0", h.CPU)
	}
}

func pbSample(f flat, s *Sample) {
	name := "sample_event#0."
	pbSampleInfo(f, name, &s.Common)
	f.set(name+"ip#0", s.IP)
	if s.Has&FieldPeriod != 0 {
		f.set(name+"period#0", s.Period)
	}
	for i, ip := range s.Callchain {
		f.set(fmt.Sprintf("%scallchain#%d", name, i), ip)
	}
	if s.Has&FieldBranchStack != 0 {
		f.set(name+"no_hw_idx#0", s.Event.BranchSampleType&BranchHWIndex == 0)
		f.set(name+"branch_stack_hw_idx#0", 0)
		if s.Event.BranchSampleType&BranchHWIndex != 0 {
			f.set(name+"branch_stack_hw_idx#0", s.BranchHWIndex)
		}
	}
	for i, b := range s.Branches {
		p := fmt.Sprintf("%sbranch_stack#%d.", name, i)
		f.set(p+"from_ip#0", b.From)
		f.set(p+"to_ip#0", b.To)
		f.set(p+"mispredicted#0", b.Flags.Mispred())
		f.set(p+"predicted#0", b.Flags.Predicted())
		f.set(p+"in_transaction#0", b.Flags.InTX())
		f.set(p+"abort#0", b.Flags.Abort())
		f.set(p+"cycles#0", b.Flags.Cycles())
		f.set(p+"type#0", b.Flags.Kind())
		f.set(p+"spec#0", b.Flags.Spec())
	}
}

// comparePB reports the fields in which want, from the dump, and got differ.
// Dumps of older quippers lack what it did not know: only these may be extra.
func comparePB(tb testing.TB, where string, want *pbNode, got flat) {
	tb.Helper()
	w := flat{}
	w.add(want, "")
	for path, v := range w {
		if pbIgnored(path) {
			continue
		}
		if strings.HasPrefix(v, `"`) {
			v = unquote(tb, v)
		}
		// quipper marks kernel addresses with 1<<63 as it relocates; frames
		// that are garbage come out of that with the bit set. The recording
		// does not have it (looked up in its bytes).
		if g, err := strconv.ParseUint(got[path], 10, 64); err == nil && strings.Contains(path, "callchain#") &&
			v == fmt.Sprint(g|1<<63) {
			continue
		}
		if g, ok := got[path]; !ok || g != v {
			tb.Errorf("%s: %s is %q, the dump says %q", where, path, g, v)
		}
	}
	for path, g := range got {
		if _, ok := w[path]; ok {
			continue
		}
		if !strings.HasSuffix(path, ".type#0") && !strings.HasSuffix(path, ".spec#0") &&
			!strings.HasSuffix(path, "no_hw_idx#0") && !strings.HasSuffix(path, "branch_stack_hw_idx#0") {
			tb.Errorf("%s: %s is %q, the dump lacks it", where, path, g)
		}
	}
}

// dumpName maps a dump to its recording.
func dumpName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, ".pb_text"), ".pr.out")
}

// TestQuipperDumps compares every field of every record, and the header, with
// the dumps another reader made of the same recordings.
func TestQuipperDumps(t *testing.T) {
	dumps, err := filepath.Glob(fixture(t, "google_perf_data_converter/quipper/*.pb_text"))
	if err != nil || len(dumps) != 16 {
		t.Fatalf("%d dumps, %v", len(dumps), err)
	}
	for _, dump := range dumps {
		t.Run(filepath.Base(dumpName(dump)), func(t *testing.T) {
			t.Parallel()
			pb := parsePB(t, dump)
			r, recs := readAll(t, dumpName(dump))
			// A dump is in the order of the file, or in that of time with
			// records without one first.
			sort.SliceStable(recs, func(i, j int) bool { return recs[i].Header().Offset < recs[j].Header().Offset })
			if pbSorted(t, pb) {
				sort.SliceStable(recs, func(i, j int) bool { return recs[i].Header().Time < recs[j].Header().Time })
			}
			// quipper leaves out CPU_MAP.
			recs = slices.DeleteFunc(recs, func(r Record) bool { return r.Header().Type == TypeCPUMap })
			pbEvents(t, pb, recs)
			pbHeader(t, pb, r.Meta())
		})
	}
}

func pbSorted(t *testing.T, pb *pbNode) bool {
	return slices.IsSortedFunc(pb.all("events"), func(a, b *pbNode) int { return cmp.Compare(pbTime(t, a), pbTime(t, b)) })
}

func pbTime(t *testing.T, ev *pbNode) uint64 {
	v, err := strconv.ParseUint(ev.get("timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// united returns the mapping at recs[i] as quipper dumps it: with the
// anonymous mappings that huge pages cut out of a file put back, if that is
// what makes it as long as the dump says.
func united(recs []Record, i int, want string) (Record, int) {
	m, ok := recs[i].(*Mmap)
	if !ok || want == fmt.Sprint(m.Len) {
		return recs[i], 0
	}
	u := *m
	for n := i + 1; n < len(recs); n++ {
		next, ok := recs[n].(*Mmap)
		if !ok || next.MapPID != m.MapPID || next.Addr != u.Addr+u.Len {
			break
		}
		u.Len += next.Len
		if want == fmt.Sprint(u.Len) {
			return &u, n - i
		}
	}
	return recs[i], 0
}

func pbEvents(t *testing.T, pb *pbNode, recs []Record) {
	i, fields := 0, 0
	for n, ev := range pb.all("events") {
		typ, err := strconv.Atoi(ev.get("header", "type"))
		if err != nil {
			t.Fatal(err)
		}
		if applies(RecordType(typ)) || RecordType(typ) == TypeFinishedRound {
			continue
		}
		if i == len(recs) {
			t.Fatalf("only %d records, the dump goes on with type %d", i, typ)
		}
		rec, more := united(recs, i, ev.get("mmap_event", "len"))
		got := asPB(rec)
		where := fmt.Sprintf("record %d at %d", n, recs[i].Header().Offset)
		if got != nil {
			comparePB(t, where, ev, got)
			fields += len(got)
		} else if int(recs[i].Header().Type) != typ {
			t.Errorf("%s: type %d, the dump says %d", where, recs[i].Header().Type, typ)
		}
		if t.Failed() {
			t.FailNow()
		}
		i += 1 + more
	}
	if i != len(recs) || fields < 10 {
		t.Errorf("%d records (%d fields), the dump has %d", len(recs), fields, i)
	}
	t.Logf("%d records, %d fields equal", i, fields)
}

var pbFlags = map[string]AttrFlags{
	"disabled": FlagDisabled, "inherit": FlagInherit, "pinned": FlagPinned, "exclusive": FlagExclusive,
	"exclude_user": FlagExcludeUser, "exclude_kernel": FlagExcludeKernel, "exclude_hv": FlagExcludeHV,
	"exclude_idle": FlagExcludeIdle, "mmap": FlagMmap, "comm": FlagComm, "freq": FlagFreq,
	"inherit_stat": FlagInheritStat, "enable_on_exec": FlagEnableOnExec, "task": FlagTask,
	"watermark": FlagWatermark, "mmap_data": FlagMmapData, "sample_id_all": FlagSampleIDAll,
	"exclude_host": FlagExcludeHost, "exclude_guest": FlagExcludeGuest, "mmap2": FlagMmap2,
	"comm_exec": FlagCommExec, "use_clockid": FlagUseClockID, "context_switch": FlagContextSwitch,
	"write_backward": FlagWriteBackward, "namespaces": FlagNamespaces, "cgroup": FlagCgroup, "ksymbol": FlagKsymbol,
	"exclude_callchain_kernel": FlagExcludeCallchainKernel, "exclude_callchain_user": FlagExcludeCallchainUser,
}

func pbAttr(t *testing.T, where string, want *pbNode, a *Attr) {
	for _, k := range want.kids {
		var got any
		flag, isFlag := pbFlags[k.name]
		switch {
		case isFlag:
			got = a.Flags&flag != 0
		case k.name == "size": // quipper writes its own
			continue
		default:
			got = map[string]any{
				"type": a.Type, "config": a.Config, "sample_period": a.SamplePeriod, "sample_type": a.SampleType,
				"read_format": a.ReadFormat, "precise_ip": a.PreciseIP(), "wakeup_events": a.WakeupEvents,
				"bp_type": a.BPType, "bp_addr": a.Config1, "bp_len": a.Config2, "branch_sample_type": a.BranchSampleType,
				"sample_regs_user": a.SampleRegsUser, "sample_stack_user": a.SampleStackUser,
			}[k.name]
		}
		if fmt.Sprint(got) != k.value {
			t.Errorf("%s: %s is %v, the dump says %s", where, k.name, got, k.value)
		}
	}
}

func pbHeader(t *testing.T, pb *pbNode, m *Meta) {
	attrs := pb.all("file_attrs")
	if len(attrs) != len(m.Events) {
		t.Fatalf("%d events, the dump has %d", len(m.Events), len(attrs))
	}
	for i, fa := range attrs {
		ev := m.Events[i]
		pbAttr(t, fmt.Sprintf("attr %d", i), fa.all("attr")[0], &ev.Attr)
		var ids []string
		for _, id := range fa.all("ids") {
			ids = append(ids, id.value)
		}
		if got := fmt.Sprint(ev.IDs); got != fmt.Sprint(ids) {
			t.Errorf("ids of event %d are %s, the dump says %s", i, got, ids)
		}
	}
	types := pb.all("event_types")
	for i, et := range types {
		// Several names for the same id are listed once.
		if len(types) == len(m.Events) && m.Events[i].Name != unquote(t, et.get("name")) {
			t.Errorf("event %d is %q, the dump says %s", i, m.Events[i].Name, et.get("name"))
		}
	}
	pbLists(t, pb, m)
	pbStrings(t, pb, m)
}

// pbLists compares build IDs, PMUs, groups and core types.
func pbLists(t *testing.T, pb *pbNode, m *Meta) {
	var want, got []string
	for _, b := range pb.all("build_ids") {
		id := unquote(t, b.get("build_id_hash"))
		want = append(want, fmt.Sprintln(b.get("misc"), b.get("pid"), unquote(t, b.get("filename")), hex.EncodeToString([]byte(id))))
	}
	for _, b := range m.BuildIDs {
		got = append(got, fmt.Sprintln(uint16(b.Misc), uint32(b.PID), b.Filename, hex.EncodeToString(b.ID)))
	}
	for _, p := range pb.all("pmu_mappings") {
		want = append(want, p.get("type")+unquote(t, p.get("name")))
	}
	for typ, name := range m.PMUMappings {
		got = append(got, fmt.Sprint(uint32(typ), name))
	}
	for _, g := range pb.all("group_desc") {
		want = append(want, fmt.Sprintln(unquote(t, g.get("name")), g.get("leader_idx"), g.get("num_members")))
	}
	for _, g := range m.Groups {
		got = append(got, fmt.Sprintln(g.Name, g.LeaderIndex, g.NrMembers))
	}
	for _, h := range pb.all("hybrid_topology") {
		want = append(want, unquote(t, h.get("pmu_name"))+unquote(t, h.get("cpus")))
	}
	for _, h := range m.HybridTopology {
		got = append(got, h.PMU+h.CPUs)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("lists differ:\n%q\nthe dump says\n%q", got, want)
	}
}

func pbStrings(t *testing.T, pb *pbNode, m *Meta) {
	for _, s := range pb.all("string_metadata") {
		for name, got := range map[string]string{
			"hostname": m.Hostname, "kernel_version": m.OSRelease, "perf_version": m.Version, "architecture": m.Arch,
			"cpu_description": m.CPUDesc, "cpu_id": m.CPUID, "perf_command_line_whole": strings.Join(m.Cmdline, " "),
		} {
			if want := unquote(t, s.get(name, "value")); got != want {
				t.Errorf("%s is %q, the dump says %q", name, got, want)
			}
		}
		for i, tok := range s.all("perf_command_line_token") {
			if i >= len(m.Cmdline) || m.Cmdline[i] != unquote(t, tok.get("value")) {
				t.Errorf("command line %q, word %d should be %s", m.Cmdline, i, tok.get("value"))
			}
		}
	}
	for _, u := range pb.all("uint32_metadata") {
		if d := u.all("data"); u.get("type") == "7" &&
			(d[0].value != fmt.Sprint(m.CPUsAvailable) || d[1].value != fmt.Sprint(m.CPUsOnline)) {
			t.Errorf("CPUs %d and %d, the dump says %s and %s", m.CPUsAvailable, m.CPUsOnline, d[0].value, d[1].value)
		}
	}
	for _, u := range pb.all("uint64_metadata") {
		if u.get("type") == "10" && u.get("data") != fmt.Sprint(m.TotalMemKiB) {
			t.Errorf("memory %d KiB, the dump says %s", m.TotalMemKiB, u.get("data"))
		}
	}
}
