// The shadow stack of a thread and the path its running function is on.
// Included by vpmu.c alone, so that everything is inlined there.
#ifndef STACK_H
#define STACK_H

#include "vpmu.h"
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static uint64_t reg_bad, reg_good; // looks at the emulator's registers that did not, or did, hold

#define MAXDEPTH (1u << 20)

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

#endif
