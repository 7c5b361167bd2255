// The virtual PMU: a QEMU TCG plugin that watches a whole x86-64 program run,
// counts exactly what it does, and writes what a processor's PMU and the
// kernel would have recorded of it. See ../README.md.
//
// A callback runs before each translated block. It first does what the branch
// at the end of the block before means (call, return, ...), which is known
// only now that its target is; then it advances clocks and counters.
#define _GNU_SOURCE
#include "vpmu.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

VISIBLE int qemu_plugin_version = 1;

Lane lane[LANES];
Sampler sampler[MAXSAMPLERS];
int nlanes, nsamplers, want_any, want_call, want_path, want_cct, want_truth, singlestep, regs_ok, go;
static int started;
static uint64_t reg_bad, reg_good;
static pthread_mutex_t trans_mu = PTHREAD_MUTEX_INITIALIZER;

#define MAXDEPTH (1u << 20)
#define MAXPATH 1000

static inline uint64_t word(uint64_t addr) { return *(const uint64_t *)addr; }
static inline uint64_t sp_of(const Thread *t) { return regs_ok > 0 ? t->env[4] : 0; }

// ---- paths: a node per prefix, the count at the node where the path ended.

#define DECISION (1u << 31) // in a node's site: a branch that could have gone elsewhere

static inline void path_start(Thread *t, uint32_t place)
{
	t->path = tree_child(&paths, tree_child(&paths, 0, 0, t->func), 0, place);
}

static inline void path_end(Thread *t)
{
	if (t->path)
		paths.v[t->path].calls++;
	t->path = 0;
}

static inline void path_step(Thread *t, const Block *from, const Block *to)
{
	if (!t->path)
		return;
	uint32_t site = from->site | (from->end == END_JMP ? 0 : DECISION);
	if (to->vaddr <= from->last) { // a loop closes: the path ends, another starts
		t->path = tree_child(&paths, t->path, site, 0);
		path_end(t);
		path_start(t, to->place);
	} else {
		t->path = tree_child(&paths, t->path, site, to->place);
		odd[ODD_PATHCUT] += !t->path;
	}
}

// ---- shadow stack

static void __attribute__((noinline)) grow_stack(Stack *s)
{
	s->cap = s->cap ? s->cap * 2 : 256;
	Frame *f = NULL;
	if (posix_memalign((void **)&f, 64, s->cap * sizeof *f))
		abort();
	memcpy(f, s->f, s->n * sizeof *f);
	free(s->f);
	s->f = f;
}

static inline Frame *push(Thread *t, const Block *site, uint64_t to, uint64_t slot, uint64_t ret)
{
	Stack *s = t->st;
	if (UNLIKELY(s->n == s->cap))
		grow_stack(s);
	if (UNLIKELY(s->n >= MAXDEPTH)) {
		odd[ODD_DEPTH]++;
		s->n--;
	}
	Frame *f = &s->f[s->n++];
	f->ret = ret, f->slot = slot, f->to = to, f->site = site;
	f->ctx = t->ctx, f->path = t->path, f->func = t->func;
	f->resolver = f->signal = 0;
	f->clk = clk(t);
	return f;
}

static inline void pop(Thread *t)
{
	const Frame *f = &t->st->f[--t->st->n];
	t->ctx = f->ctx, t->path = f->path, t->func = f->func;
}

// abandon drops frames whose place on the stack is below sp: longjmp, an
// exception or a thrown-away stack left them without a return.
static void abandon(Thread *t, uint64_t sp)
{
	while (t->st->n && t->st->f[t->st->n - 1].slot && t->st->f[t->st->n - 1].slot < sp) {
		pop(t);
		odd[ODD_POPPED]++;
	}
}

// check_regs finds out whether the emulator's registers are where we look
// for them: after a call, the word at rsp must be the return address.
static void __attribute__((noinline)) check_regs(Thread *t, uint64_t ret)
{
	uint64_t sp = t->env[4];
	uint64_t top = 0;
	struct iovec local = {&top, 8}, remote = {(void *)sp, 8};
	if (reg_good) // then sp can be trusted not to be wild
		top = word(sp);
	else
		process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	if (top == ret)
		reg_good++;
	else
		reg_bad++;
	if (reg_bad)
		regs_ok = -1;
	else if (reg_good == 1)
		regs_ok = 1;
}

// Goroutines: Go's runtime moves a thread from stack to stack, and stacks to
// other addresses when they grow. Each g has its own shadow stack.
static void __attribute__((noinline)) go_switch(Thread *t)
{
	enum { NG = 1 << 14, FS_BASE = 288 / 8 }; // CPUX86State.segs[R_FS].base
	static Stack *gs[NG];
	uint64_t fs = t->env[FS_BASE], g = fs > 4096 && fs < 1ul << 47 ? word(fs - 8) : 0;
	if (g == t->st->g || g < 4096 || g >= 1ul << 47 || (g & 7))
		return;
	uint64_t lo = word(g), hi = word(g + 8), sp = t->env[4];
	if (sp < lo || sp > hi)
		return; // on the signal stack, or in between
	Stack **p = &gs[mix(g) % NG];
	while (*p && (*p)->g != g)
		p = &gs[(p - gs + 1) % NG];
	if (!*p) {
		*p = calloc(1, sizeof **p);
		(*p)->g = g;
	}
	// What the thread was in the middle of is kept as a frame without address.
	push(t, &start_block, 0, 0, 0);
	t->st = *p;
	if (t->st->n)
		pop(t);
	else
		t->ctx = t->path = t->func = 0;
	if (t->st->hi && t->st->hi != hi)
		for (uint32_t i = 0; i < t->st->n; i++)
			t->st->f[i].slot += t->st->f[i].slot ? hi - t->st->hi : 0;
	t->st->hi = hi;
}

static inline void record_edge(Block *site, uint32_t callee)
{
	if (UNLIKELY(site->callee != callee || !site->edge)) {
		site->edge = edge_of(site->site, callee);
		site->callee = callee;
	}
	++*site->edge;
}

// entered makes b, reached by a call from site, the running function; the
// frame is pushed already.
static inline void entered(Thread *t, const Frame *f, const Block *b, const int path)
{
	record_edge((Block *)f->site, b->place);
	if (want_cct) {
		t->ctx = tree_child(&cct, f->ctx, f->site->site, b->place);
		cct.v[t->ctx].calls++;
	}
	t->func = b->place;
	if (path)
		path_start(t, b->place);
	if (UNLIKELY(t->defer_mask))
		deferred(t, b);
}

// in_stub follows a call through PLT stubs, and through the dynamic linker
// when the stub is not bound yet: the callee is what they jump to at last.
static void __attribute__((noinline)) in_stub(Thread *t, const Block *b, const int path)
{
	if (b->flags & BLK_PLT) {
		t->pending = b->flags & BLK_PLT0 ? 2 : t->pending;
		return;
	}
	int resolving = t->pending == 2;
	uint64_t slot = sp_of(t);
	if (slot && resolving) // the stubs pushed two words for the linker
		slot += 16;
	Frame *f = push(t, t->pend_site, t->pend_to, slot, t->pend_site->fall);
	t->pending = 0;
	if (!resolving) {
		entered(t, f, b, path);
		return;
	}
	f->resolver = 1;
	if (want_cct)
		t->ctx = tree_child(&cct, t->ctx, f->site->site, b->place);
	t->func = b->place;
	t->path = 0;
}

static inline void call(Thread *t, Block *p, const Block *b, const int path)
{
	t->calls++;
	if (UNLIKELY(regs_ok >= 0 && reg_good < 1000))
		check_regs(t, p->fall);
	uint64_t slot = sp_of(t);
	if (UNLIKELY(slot && word(slot) != p->fall)) {
		// A signal came between call and callee, and its handler sent the
		// thread elsewhere (Go preempts so): b is not the callee.
		odd[ODD_UNEXPECTED]++;
		t->calls--;
		return;
	}
	if (want_any)
		t->any[t->any_n++ % RING] = (Br){p, b->vaddr, clk(t)};
	if (want_call)
		t->call[t->call_n++ % RING] = (Br){p, b->vaddr, clk(t)};
	if (UNLIKELY(go))
		go_switch(t);
	if (UNLIKELY(t->st->n && t->st->f[t->st->n - 1].slot <= slot && slot))
		abandon(t, slot + 1);
	if (UNLIKELY(b->flags & BLK_PLT)) {
		t->pending = b->flags & BLK_PLT0 ? 2 : 1;
		t->pend_site = p;
		t->pend_to = b->vaddr;
		return;
	}
	entered(t, push(t, p, b->vaddr, slot, p->fall), b, path);
}

static void __attribute__((noinline)) odd_return(Thread *t, const Block *p, const Block *b)
{
	Stack *s = t->st;
	uint64_t slot = regs_ok > 0 ? t->env[4] - 8 - p->ret_imm : 0;
	if (slot) {
		abandon(t, slot);
		if (s->n && s->f[s->n - 1].slot == slot) {
			// The address was changed on the stack (retpoline): still this frame's end.
			if (s->f[s->n - 1].ret != b->vaddr)
				odd[ODD_RET]++;
			pop(t);
		} else {
			odd[ODD_RET]++; // a jump by push and ret
		}
		return;
	}
	for (uint32_t i = s->n; i--;)
		if (s->f[i].ret == b->vaddr) {
			while (s->n > i)
				pop(t), odd[ODD_POPPED]++;
			return;
		}
	odd[ODD_RET]++;
}

static inline void ret(Thread *t, const Block *p, const Block *b, const int path)
{
	if (want_any)
		t->any[t->any_n++ % RING] = (Br){p, b->vaddr, clk(t)};
	if (UNLIKELY(go))
		go_switch(t);
	if (path)
		path_end(t);
	Stack *s = t->st;
	if (LIKELY(s->n)) {
		const Frame *f = &s->f[s->n - 1];
		if (LIKELY(f->ret == b->vaddr && (!f->slot || f->slot + 8 + p->ret_imm == t->env[4]))) {
			pop(t);
			return;
		}
	}
	odd_return(t, p, b);
}

static void jump_indirect(Thread *t, const Block *p, const Block *b, const int path)
{
	if (want_any)
		t->any[t->any_n++ % RING] = (Br){p, b->vaddr, clk(t)};
	if (UNLIKELY(go))
		go_switch(t);
	Stack *s = t->st;
	if (!s->n) { // from the dynamic linker to the program: a new outermost function
		if (b->image != p->image || !t->func) {
			t->ctx = want_cct ? tree_child(&cct, 0, 0, b->place) : 0;
			t->func = b->place;
			if (path)
				path_start(t, b->place);
		}
		return;
	}
	Frame *f = &s->f[s->n - 1];
	if (UNLIKELY(f->resolver)) {
		f->resolver = 0;
		t->path = 0;
		entered(t, f, b, path);
		return;
	}
	uint64_t sp = sp_of(t);
	if (UNLIKELY(sp && f->slot && f->slot < sp)) { // longjmp
		abandon(t, sp);
		if (path && !t->path)
			path_start(t, b->place);
		return;
	}
	if (path)
		path_step(t, p, b);
}

// signal_entry: b is a handler, and its return address the restorer.
static int __attribute__((noinline)) signal_entry(Thread *t, Block *b)
{
	if (regs_ok < 0)
		return 0;
	uint64_t sp = t->env[4];
	if (!is_restorer(word(sp)))
		return 0;
	odd[ODD_SIGNALS]++;
	const Block *p = t->prev;
	if (t->nsaved < 16)
		t->saved[t->nsaved] = p;
	t->nsaved++;
	t->prev = b;
	Frame *f = push(t, &start_block, b->vaddr, sp, word(sp));
	f->signal = 1;
	if (want_cct) {
		t->ctx = tree_child(&cct, t->ctx, 0, b->place);
		cct.v[t->ctx].calls++;
	}
	t->func = b->place;
	if (want_path)
		path_start(t, b->place);
	return 1;
}

static void __attribute__((noinline)) signal_return(Thread *t)
{
	t->sigret = 0;
	if (t->nsaved && --t->nsaved < 16)
		t->prev = t->saved[t->nsaved];
}

// not_next: b does not follow p, though p ends in no branch. See decode.
static void __attribute__((noinline)) not_next(Thread *t, Block *p, const Block *b)
{
	if (b->vaddr != p->last || p->n < 2) {
		odd[ODD_UNEXPECTED]++;
		return;
	}
	lanes was = p->cost;
	block_shorten(p);
	t->insns--;
	t->left += was - p->cost;
}

static void thread_begins(Thread *t, const Block *b)
{
	if (want_cct)
		t->ctx = tree_child(&cct, 0, 0, b->place);
	t->func = b->place;
	if (want_path)
		path_start(t, b->place);
}

static inline __attribute__((always_inline)) void step(unsigned vcpu, Block *b, const uint64_t *env, const int truth,
							 const int path)
{
	busy = 1;
	if (UNLIKELY((int)vcpu != owner || !cur->env))
		if (!enter(vcpu, env))
			return;
	Thread *t = cur;
	if (UNLIKELY(t->sigret))
		signal_return(t);
	if (UNLIKELY(b->flags & BLK_HANDLER) && truth && signal_entry(t, b))
		goto run;
	Block *p = (Block *)t->prev;
	t->prev = b;
	t->branches += p->branch;
	if (!truth) {
		if (UNLIKELY(b->vaddr == p->last) && p->end == END_NONE)
			not_next(t, p, b);
		t->calls += p->end == END_CALL || p->end == END_CALLI;
		if (p->end == END_REP && p->last == b->vaddr)
			t->insns--, t->left += b->rep_back;
		goto run;
	}
	if (UNLIKELY(t->pending)) {
		if (want_any && b->vaddr != p->fall)
			t->any[t->any_n++ % RING] = (Br){p, b->vaddr, clk(t)};
		in_stub(t, b, path);
		goto run;
	}
	switch (p->end) {
	case END_COND:
		if (b->vaddr == p->fall) {
			p->cond->not_taken++;
		} else {
			p->cond->taken++;
			odd[ODD_UNEXPECTED] += b->vaddr != p->target;
			if (want_any)
				t->any[t->any_n++ % RING] = (Br){p, b->vaddr, clk(t)};
		}
		if (path)
			path_step(t, p, b);
		break;
	case END_JMP:
		odd[ODD_UNEXPECTED] += b->vaddr != p->target;
		if (want_any)
			t->any[t->any_n++ % RING] = (Br){p, b->vaddr, clk(t)};
		if (path)
			path_step(t, p, b);
		break;
	case END_JMPI:
		jump_indirect(t, p, b, path);
		break;
	case END_CALL:
		call(t, p, b, path);
		break;
	case END_CALLI:
		call(t, p, b, path);
		break;
	case END_RET:
		ret(t, p, b, path);
		break;
	case END_REP:
		if (b->vaddr == p->last) // one instruction, however often it repeats
			t->insns--, t->left += b->rep_back;
		break;
	case END_START:
		thread_begins(t, b);
		break;
	default:
		if (UNLIKELY(b->vaddr != p->fall))
			not_next(t, p, b);
	}
run:
	t->insns += b->n;
	lanes left = t->left - b->cost;
	t->left = left;
	if (UNLIKELY(below_zero(left)))
		due(t, b);
	busy = 0;
}

// QEMU's generated code keeps the pointer to the vcpu's registers in rbp on
// x86-64 hosts, and at the start of a block all of them are in memory. The
// entry points hand it on; check_regs makes sure that it is what we think.
#define ENTRY(name, impl, truth, path)                                                              \
	static __attribute__((used)) void impl(unsigned vcpu, void *b, const uint64_t *env)         \
	{                                                                                           \
		step(vcpu, b, env, truth, path);                                                    \
	}                                                                                           \
	static __attribute__((naked)) void name(unsigned vcpu __attribute__((unused)), void *b __attribute__((unused)))                             \
	{                                                                                           \
		__asm__("movq %rbp, %rdx\n\tjmp " #impl);                                           \
	}
ENTRY(on_block_count, step_count, 0, 0)
ENTRY(on_block_truth, step_truth, 1, 0)
ENTRY(on_block_paths, step_paths, 1, 1)

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	(void)id;
	if (forked)
		return;
	pthread_mutex_lock(&trans_mu);
	if (!started) {
		started = 1;
		image_start();
		go = want_truth && image_is_go();
	}
	Block *b = block_of(tb);
	pthread_mutex_unlock(&trans_mu);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, want_path ? on_block_paths : want_truth ? on_block_truth : on_block_count,
					     CB_NO_REGS, b);
}

static void at_exit(plugin_id id, void *user);

static void on_syscall(plugin_id id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		       uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
	(void)id, (void)a7, (void)a8;
	const uint64_t a[6] = {a1, a2, a3, a4, a5, a6};
	if (forked)
		return;
	if ((int)vcpu == owner) {
		if (num == 15)
			cur->sigret = 1;
		if (num == 13 && a2 && word(a2) > 4095) // struct sigaction: handler, flags, restorer
			block_handler(word(a2), word(a2 + 16));
		if (num == 157 && a1 == 15) { // PR_SET_NAME
			char name[17] = "";
			strncpy(name, (const char *)a2, 15);
			out_u8('C');
			out_u32(cur->index);
			out_lanes(now_wall());
			out_str(name);
		}
		if (num == 57 || num == 58 || (num == 56 && (!(a1 & 0x100) || a1 & 0x4000)))
			odd[ODD_FORKS]++;
		if (num == 59 && access((const char *)a1, X_OK) == 0) {
			at_exit(0, NULL); // what follows is another program, run by the kernel itself
			return;
		}
	}
	sched_syscall(vcpu, num, a);
}

static void on_sysret(plugin_id id, unsigned vcpu, int64_t num, int64_t ret)
{
	(void)id;
	if (forked)
		return;
	sched_sysret(vcpu);
	const int64_t *a = cur->sys_a;
	if (cur->sys_num != num || (ret < 0 && ret > -4096))
		return;
	pthread_mutex_lock(&trans_mu);
	if (num == 9)
		image_map(a[0], a[1], a[2], a[3], a[4], a[5], ret);
	else if (num == 10)
		image_protect(a[0], a[1], a[2]);
	else if (num == 11)
		image_unmap(a[0], a[1]);
	pthread_mutex_unlock(&trans_mu);
	if (num == 202 && ret > 0 && ((a[1] & 0x7f) == 1 || (a[1] & 0x7f) == 5 || (a[1] & 0x7f) == 10))
		sched_woke(ret);
}

static void on_vcpu(plugin_id id, unsigned vcpu) { (void)id; if (!forked) thread_new(vcpu); }
static void on_vcpu_exit(plugin_id id, unsigned vcpu) { (void)id; thread_exit(vcpu); }

static void at_exit(plugin_id id, void *user)
{
	(void)id, (void)user;
	if (forked)
		return;
	sched_end();
	out_u8('R');
	out_u8(regs_ok > 0);
	image_write();
	if (want_truth)
		truth_write();
	out_u8('.');
	out_close();
	forked = 1; // whatever still runs is not ours any more
}

static void read_config(const char *path)
{
	char line[4096], key[64], val[4000];
	FILE *f = fopen(path, "re");
	if (!f) {
		perror(path);
		exit(1);
	}
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "%63s %3999[^\n]", key, val) != 2)
			continue;
		if (!strcmp(key, "out"))
			out_open(val);
		else if (!strcmp(key, "truth"))
			want_truth = atoi(val);
		else if (!strcmp(key, "cct"))
			want_cct = atoi(val);
		else if (!strcmp(key, "paths"))
			want_path = atoi(val);
		else if (!strcmp(key, "singlestep"))
			singlestep = atoi(val);
		else if (!strcmp(key, "slice"))
			slice = atoll(val) * UNIT;
		else if (!strcmp(key, "lane") && nlanes < LANES) {
			Lane *l = &lane[nlanes++];
			sscanf(val, "%d %lf %lu", &l->kind, &l->sigma, &l->seed);
		} else if (!strcmp(key, "sampler") && nsamplers < MAXSAMPLERS) {
			Sampler *s = &sampler[nsamplers++];
			sscanf(val, "%d %d %ld %lf %lu %d %d %d %d %d %d %d %u %ld %ld", &s->lane, &s->time, &s->period, &s->jitter,
			       &s->seed, &s->skid, &s->clock, &s->defer, &s->branch, &s->chain, &s->maxstack, &s->regs, &s->stack,
			       &s->mux_on, &s->mux_off);
			want_any |= s->branch == BR_ANY;
			want_call |= s->branch == BR_CALL;
			if (s->maxstack > 1000)
				s->maxstack = 1000;
			if (s->stack > 65536)
				s->stack = 65536;
		}
	}
	fclose(f);
}

VISIBLE int qemu_plugin_install(plugin_id id, const qemu_info *info, int argc, char **argv)
{
	if (info->system_emulation || strcmp(info->target_name, "x86_64") || argc < 1 || strncmp(argv[0], "conf=", 5)) {
		fprintf(stderr, "vpmu: needs qemu-x86_64 (user mode) and conf=FILE\n");
		return 1;
	}
	slice = 4000000l * UNIT;
	read_config(argv[0] + 5);
	truth_init();
	image_init();
	sched_init();
	qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
	qemu_plugin_register_vcpu_exit_cb(id, on_vcpu_exit);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_sysret);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
