// The virtual PMU: a QEMU TCG plugin that watches a whole x86-64 program run,
// counts exactly what it does, and writes what a processor's PMU and the
// kernel would have recorded of it. See ../README.md.
//
// A callback runs before each translated block. It first does what the branch
// at the end of the block before means (call, return, ...), which is known
// only now that its target is; then it advances clocks and counters.
#define _GNU_SOURCE
#include "flow.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

VISIBLE int qemu_plugin_version = 1;

Lane lane[LANES];
Sampler sampler[MAXSAMPLERS];
int nlanes, nsamplers, want_any, want_call, want_path, want_cct, want_truth, singlestep, regs_ok, go_program;
static int started;
static pthread_mutex_t trans_mu = PTHREAD_MUTEX_INITIALIZER;

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
		go_program = want_truth && image_is_go();
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
