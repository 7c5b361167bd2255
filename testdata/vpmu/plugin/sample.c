// Samplers: when a sample is due, and what it contains.
//
// A tick is due at a point of a clock, which falls into some instruction of
// some block in proportion to cost. The sample is taken there, or `skid`
// instructions later, or (defer) at the first function entered by a call
// after that.
#define _GNU_SOURCE
#include "vpmu.h"
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAXCHAIN 1024

static double unit(uint64_t *rng) { return (mix((*rng)++) >> 11) / 9007199254740992.0; }

static int64_t next_period(const Sampler *s, uint64_t *rng)
{
	if (s->jitter == 0)
		return s->period;
	int64_t p = s->period * (1 + s->jitter * (unit(rng) - 0.5));
	return p < 1 ? 1 : p;
}

void samplers_start(Thread *t)
{
	lanes now = clk(t);
	for (int i = 0; i < nsamplers; i++) {
		Sampler *s = &sampler[i];
		SState *st = &t->s[i];
		st->rng = mix(s->seed * 1000003 + t->index);
		st->period = next_period(s, &st->rng);
		int64_t phase = 1 + unit(&st->rng) * s->period;
		st->due = now[s->lane] + phase;
		// Where a real counter overflows it is at a multiple of a fixed period.
		st->start = s->jitter == 0 && s->clock == CLOCK_THREAD ? s->period - phase : 0;
		st->toggle = s->mux_on ? now[s->time] + s->mux_on : FAR;
		st->seen = s->wall_tick;
		if (s->clock == CLOCK_WALL && !s->rng) {
			s->rng = mix(s->seed * 1000003) | 1;
			s->wall_period = next_period(s, &s->rng);
			s->wall_due = 1 + unit(&s->rng) * s->period;
			s->wall_start = s->jitter == 0 ? s->period - s->wall_due : 0;
		}
	}
	rearm(t);
}

// rearm sets the countdown of each lane to the nearest thing due on it.
void rearm(Thread *t)
{
	lanes now = clk(t), left;
	for (int i = 0; i < LANES; i++)
		left[i] = FAR;
	if (nthreads > 1 && slice_end - now[0] < left[0])
		left[0] = slice_end - now[0];
	for (int i = 0; i < nsamplers; i++) {
		const Sampler *s = &sampler[i];
		const SState *st = &t->s[i];
		int64_t at = s->clock == CLOCK_THREAD ? st->due
			   : st->seen != s->wall_tick ? 0 : s->wall_due - t->walloff[s->lane];
		if (st->pend == PEND_SKID)
			at = 0;
		if (at - now[s->lane] < left[s->lane])
			left[s->lane] = at - now[s->lane];
		if (st->toggle - now[s->time] < left[s->time])
			left[s->time] = st->toggle - now[s->time];
	}
	for (int i = 0; i < LANES; i++)
		if (left[i] < 0)
			left[i] = -1;
	t->left = left;
	t->base = now + left;
}

static Counts counts(const Thread *t, const Sampler *s, lanes now, uint64_t insns, int64_t leader)
{
	return (Counts){{now[s->time] / UNIT, t->calls, insns, t->branches}, leader};
}

static size_t fp_chain(const Thread *t, uint64_t *out, size_t max)
{
	uint64_t fp = t->env[5], frame[2];
	size_t n = 0;
	while (n < max) {
		struct iovec local = {frame, 16}, remote = {(void *)fp, 16};
		if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 16)
			break;
		out[n++] = frame[1];
		fp = frame[0];
	}
	return n;
}

static size_t exact_chain(const Thread *t, uint64_t *out, size_t max)
{
	size_t n = 0;
	if (t->pending && n < max)
		out[n++] = t->pend_site->fall;
	for (uint32_t i = t->st->n; i-- && n < max;)
		out[n++] = t->st->f[i].ret;
	return n;
}

// PERF_BR_* of a block's end.
static uint64_t kind(const Block *b)
{
	static const uint8_t k[] = {[END_COND] = 1, [END_JMP] = 2, [END_JMPI] = 3, [END_CALL] = 4, [END_CALLI] = 5, [END_RET] = 6};
	return b->end < sizeof k ? k[b->end] : 0;
}

static void out_branch(const Block *from, uint64_t to, int64_t cycles)
{
	cycles /= UNIT;
	out_u64(from->last), out_u64(to);
	out_u64(2 | (uint64_t)(cycles > 0xffff ? 0xffff : cycles) << 4 | kind(from) << 20);
}

static void out_ring(const Br *ring, uint32_t n, int time)
{
	uint32_t k = n < LBR ? n : LBR;
	out_u32(k);
	for (uint32_t i = 0; i < k; i++) {
		const Br *b = &ring[(n - 1 - i) % RING], *older = &ring[(n - 2 - i) % RING];
		out_branch(b->from, b->to, b->clk[time] - (n - 1 - i ? older->clk[time] : 0));
	}
}

static void out_callstack(const Stack *st, int time)
{
	uint32_t k = st->n < LBR ? st->n : LBR;
	out_u32(k);
	for (uint32_t i = 0; i < k; i++) {
		const Frame *f = &st->f[st->n - 1 - i];
		out_branch(f->site, f->to, f->clk[time] - (st->n - 1 - i ? f[-1].clk[time] : 0));
	}
}

static void out_regs(const Thread *t, uint64_t ip, uint32_t stack)
{
	// PERF_REG_X86_*: ax bx cx dx si di bp sp ip flags cs ss r8-r15.
	static const uint8_t from[] = {0, 3, 1, 2, 6, 7, 5, 4};
	static uint8_t dump[65536];
	for (int i = 0; i < 8; i++)
		out_u64(t->env[from[i]]);
	out_u64(ip), out_u64(0x202), out_u64(0x33), out_u64(0x2b);
	for (int i = 8; i < 16; i++)
		out_u64(t->env[i]);
	size_t got = 0;
	uint64_t sp = t->env[4];
	while (got < stack) { // page by page: the stack's mapping may end first
		size_t n = 4096 - ((sp + got) & 4095);
		n = n > stack - got ? stack - got : n;
		struct iovec local = {dump + got, n}, remote = {(void *)(sp + got), n};
		if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)n)
			break;
		got += n;
	}
	out_u32(got);
	out_bytes(dump, got);
}

// emit writes one sample, taken at instruction j of b; at and insns are the
// clocks and the instruction count there.
static void emit(Thread *t, int i, const Block *b, uint32_t j, lanes at, uint64_t insns)
{
	const Sampler *s = &sampler[i];
	SState *st = &t->s[i];
	uint64_t chain[MAXCHAIN], ip = b->vaddr + b->at[j];
	size_t n = 0;
	int64_t leader = at[s->lane] + (s->clock == CLOCK_WALL ? t->walloff[s->lane] + s->wall_start : st->start);
	Counts c = counts(t, s, at, insns, leader / UNIT);
	out_u8('S');
	out_u8(i);
	out_u32(t->index);
	out_u64((at[s->time] + t->walloff[s->time]) / UNIT);
	out_u64(ip);
	out_u64((st->pend_period + UNIT / 2) / UNIT);
	for (int k = 0; k < 4; k++)
		out_u64(c.vals[k] - st->gone.vals[k]);
	out_u64(c.leader - st->gone.leader);
	out_u64(at[s->time] / UNIT);
	out_u64((at[s->time] - st->gone_time) / UNIT);
	out_u32(t->ctx);
	if (s->chain == CHAIN_EXACT)
		n = exact_chain(t, chain, s->maxstack);
	else if (s->chain == CHAIN_FP && regs_ok > 0)
		n = fp_chain(t, chain, s->maxstack);
	out_u32(n);
	out_bytes(chain, n * 8);
	if (s->branch == BR_ANY)
		out_ring(t->any, t->any_n, s->time);
	else if (s->branch == BR_CALL)
		out_ring(t->call, t->call_n, s->time);
	else if (s->branch == BR_STACK)
		out_callstack(t->st, s->time);
	else
		out_u32(0);
	int regs = s->regs && regs_ok > 0;
	out_u8(regs);
	if (regs)
		out_regs(t, ip, s->stack);
	st->pend = 0;
}

static lanes within(lanes at, const Block *b, uint32_t j) { return at + b->cost * (int64_t)j / b->n; }

static void fire(Thread *t, int i, const Block *b, lanes c0, int64_t point)
{
	const Sampler *s = &sampler[i];
	SState *st = &t->s[i];
	int64_t cost = b->cost[s->lane];
	int64_t j = lane[s->lane].kind >= LANE_CALLS || cost == 0 ? b->n - 1 : (point - c0[s->lane]) * b->n / cost;
	j = j < 0 ? 0 : j >= b->n ? b->n - 1 : j;
	if (s->defer) {
		st->pend = PEND_CALL;
		t->defer_mask |= 1;
		return;
	}
	j += s->skid;
	if (j >= b->n) {
		st->pend = PEND_SKID;
		st->skid_left = j - b->n;
		return;
	}
	lanes at = within(c0, b, j);
	if (at[s->lane] < point + 1) // the tick itself lies inside the instruction
		at[s->lane] = point + 1;
	if (lane[s->lane].kind >= LANE_CALLS)
		at[s->lane] = c0[s->lane] + cost;
	emit(t, i, b, j, at, t->insns - b->n + j);
}

static void toggle(Thread *t, int i, lanes now, uint64_t insns)
{
	const Sampler *s = &sampler[i];
	SState *st = &t->s[i];
	Counts c = counts(t, s, now, insns, now[s->lane] / UNIT);
	if (!st->off) {
		st->off = 1, st->off_at = c, st->off_time = now[s->time];
		st->due -= now[s->lane]; // what is left of the period
		st->toggle += s->mux_off;
		return;
	}
	st->off = 0;
	st->due += now[s->lane];
	for (int k = 0; k < 4; k++)
		st->gone.vals[k] += c.vals[k] - st->off_at.vals[k];
	st->gone.leader += c.leader - st->off_at.leader;
	st->gone_time += now[s->time] - st->off_time;
	st->toggle += s->mux_on;
}

static void one(Thread *t, int i, const Block *b, lanes c0, lanes c1)
{
	Sampler *s = &sampler[i];
	SState *st = &t->s[i];
	int l = s->lane;
	if (st->toggle < c1[s->time])
		toggle(t, i, c0, t->insns - b->n);
	if (st->pend == PEND_SKID && !st->off) {
		if (st->skid_left < b->n)
			emit(t, i, b, st->skid_left, within(c0, b, st->skid_left), t->insns - b->n + st->skid_left);
		else
			st->skid_left -= b->n;
	}
	if (s->clock == CLOCK_WALL) {
		while (s->wall_due < c1[l] + t->walloff[l]) {
			s->wall_at = s->wall_due;
			s->wall_tick++;
			s->wall_period = next_period(s, &s->rng);
			s->wall_due += s->wall_period;
		}
		if (st->seen == s->wall_tick)
			return;
		// Ticks the thread slept through are one: the flag is only set again.
		st->seen = s->wall_tick;
		st->pend_period = s->period;
		int64_t point = s->wall_at - t->walloff[l];
		if (!st->pend && !st->off)
			fire(t, i, b, c0, point < c0[l] ? c0[l] : point);
		return;
	}
	if (st->off || st->due >= c1[l])
		return;
	int64_t point = st->due;
	st->pend_period = st->pend ? st->pend_period : st->period;
	do {
		st->period = next_period(s, &st->rng);
		st->due += st->period;
	} while (st->due < c1[l]);
	if (!st->pend)
		fire(t, i, b, c0, point);
}

// due runs when a countdown has passed zero in block b.
void due(Thread *t, const Block *b)
{
	lanes c1 = clk(t), c0 = c1 - b->cost;
	for (int i = 0; i < nsamplers; i++)
		one(t, i, b, c0, c1);
	if (nthreads > 1 && c1[0] >= slice_end) {
		if (waiters()) {
			leave_cpu(2);
			return;
		}
		slice_end = c1[0] + slice;
	}
	rearm(t);
}

// deferred takes the samples that waited for a call; b is the first block of
// the function entered and has not run yet.
void deferred(Thread *t, const Block *b)
{
	for (int i = 0; i < nsamplers; i++)
		if (t->s[i].pend == PEND_CALL && !t->s[i].off)
			emit(t, i, b, 0, clk(t), t->insns);
	t->defer_mask = 0;
}
