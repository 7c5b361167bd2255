// What the branch between two blocks means: call, return, jump, signal.
// Included by vpmu.c alone, so that everything is inlined there.
#ifndef FLOW_H
#define FLOW_H

#include "stack.h"

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
	if (UNLIKELY(go_program))
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
	if (UNLIKELY(go_program))
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
	if (UNLIKELY(go_program))
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

#endif
