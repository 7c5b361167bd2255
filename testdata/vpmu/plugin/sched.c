// The virtual machine's one CPU. Threads take turns on it, the one that ran
// least first (as CFS does): a thread keeps the CPU until it enters a system
// call that may block, wakes another that ran less, or its time slice is over
// and another that ran less waits. The wall clock is the sum of what all
// threads ran, so nothing takes time but guest instructions; a thread's own
// clock stands still while another runs.
//
// Holding the CPU is also the lock of all state of the plugin.
//
// QEMU sometimes stops all vcpus at the same time (fork, code cache flush)
// and waits for those that wait here. So a waiting thread takes the CPU away
// from a holder that made no progress for a while; the holder finds out at
// its next block.
#define _GNU_SOURCE
#include "vpmu.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAXVCPU 4096
#define STALL_NS 3000000

volatile int owner = -1, busy;
int nthreads, forked;
Thread *cur;
lanes wall;
int64_t slice, slice_end;
uint64_t odd[ODD_N];

static Thread *threads[MAXVCPU];
static uint32_t created;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int queue[MAXVCPU], nqueue;
static volatile uint64_t handovers, arrivals;

// ran is a thread's virtual run time, by which turns are given.
static int64_t ran(const Thread *t) { return t->vr + clk(t)[0]; }

// first is the waiting thread whose turn is next, -1 if there is none.
static int first(void)
{
	int best = -1;
	for (int i = 0; i < nqueue; i++)
		if (best < 0 || ran(threads[queue[i]]) < ran(threads[best]))
			best = queue[i];
	return best;
}

// waiters: somebody should have the CPU instead of cur.
int waiters(void)
{
	if (!nqueue)
		return 0;
	pthread_mutex_lock(&mu);
	int f = first(), yes = f >= 0 && ran(threads[f]) < ran(cur);
	pthread_mutex_unlock(&mu);
	return yes;
}

lanes now_wall(void) { return cur && owner >= 0 ? clk(cur) + cur->walloff : wall; }

static void tell_switch(const Thread *t, int what)
{
	out_u8('W');
	out_u32(t->index);
	out_lanes(wall);
	out_u8(what);
}

static void switch_out(Thread *t, int how)
{
	wall = clk(t) + t->walloff;
	t->out = how;
}

static void switch_in(int vcpu)
{
	Thread *t = threads[vcpu];
	static Thread *before;
	if (before && before != t) {
		// Records are written only when another thread really ran.
		if (before->out != 3)
			tell_switch(before, before->out == 2 ? 2 : 1);
		tell_switch(t, 0);
	}
	before = t;
	t->walloff = wall - clk(t);
	t->out = 0;
	cur = t;
	owner = vcpu;
	handovers++;
	slice_end = clk(t)[0] + slice;
	rearm(t);
}

static void pop_queue(int vcpu)
{
	int i = 0;
	while (i < nqueue && queue[i] != vcpu)
		i++;
	if (i < nqueue)
		memmove(&queue[i], &queue[i + 1], (--nqueue - i) * sizeof *queue);
}

static struct timespec soon(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += STALL_NS;
	if (ts.tv_nsec >= 1000000000)
		ts.tv_sec++, ts.tv_nsec -= 1000000000;
	return ts;
}

// acquire waits for the CPU.
static void acquire(int vcpu)
{
	pthread_mutex_lock(&mu);
	if (owner != -1 || nqueue) {
		uint64_t seen = 0;
		int64_t progress = 0;
		Thread *t = threads[vcpu];
		if (t->out == 1 && cur && ran(t) < ran(cur) - slice)
			t->vr += ran(cur) - slice - ran(t); // sleeping saves up no more than that
		queue[nqueue++] = vcpu;
		arrivals++;
		pthread_cond_broadcast(&turn);
		while (owner != -1 || first() != vcpu) {
			struct timespec ts = soon();
			if (!pthread_cond_timedwait(&turn, &mu, &ts) || first() != vcpu || owner == -1)
				continue;
			Thread *o = threads[owner];
			if (!o)
				continue;
			int64_t p = o->left[0];
			if (handovers == seen && p == progress && !busy) {
				int victim = owner;
				owner = -1; // seen by its next block
				for (int i = 0; i < 100 && (i < 3 || busy); i++)
					usleep(100); // its stores are visible by then
				odd[ODD_STEALS]++;
				switch_out(threads[victim], 1);
				break;
			}
			seen = handovers, progress = p;
		}
		pop_queue(vcpu);
	}
	switch_in(vcpu);
	pthread_mutex_unlock(&mu);
}

// leave_cpu gives the CPU to whoever waits longest. how: 1 blocked, 2 preempted.
void leave_cpu(int how)
{
	pthread_mutex_lock(&mu);
	switch_out(cur, how);
	owner = -1;
	pthread_cond_broadcast(&turn);
	pthread_mutex_unlock(&mu);
}

static void *aligned(size_t n)
{
	void *p = NULL;
	if (posix_memalign(&p, 64, n))
		abort();
	return memset(p, 0, n);
}

void thread_new(unsigned vcpu)
{
	if (vcpu >= MAXVCPU)
		abort();
	Thread *t = aligned(sizeof *t);
	t->index = __atomic_fetch_add(&created, 1, __ATOMIC_RELAXED);
	t->prev = &start_block;
	t->vr = cur ? ran(cur) : 0; // no credit for not having existed
	t->own = t->st = aligned(sizeof *t->st);
	for (int i = 0; i < LANES; i++)
		t->base[i] = t->left[i] = FAR;
	threads[vcpu] = t;
	__atomic_fetch_add(&nthreads, 1, __ATOMIC_RELAXED);
	out_u8('T');
	out_u32(t->index);
	out_lanes(now_wall());
	out_u32(cur ? cur->index : 0);
}

void thread_exit(unsigned vcpu)
{
	Thread *t = threads[vcpu];
	if (forked || !t)
		return;
	if (owner != (int)vcpu)
		acquire(vcpu);
	out_u8('X');
	out_u32(t->index);
	out_lanes(now_wall());
	out_lanes(clk(t));
	out_u64(t->insns), out_u64(t->calls), out_u64(t->branches);
	nthreads--;
	threads[vcpu] = NULL;
	leave_cpu(3);
}

// enter makes vcpu the running one; its env is known from the first block on.
int enter(unsigned vcpu, const uint64_t *env)
{
	if (forked)
		return 0;
	if (owner != (int)vcpu) {
		busy = 0;
		acquire(vcpu);
		busy = 1;
	}
	if (!cur->env) {
		cur->env = env;
		samplers_start(cur);
	}
	return 1;
}

// Calls that never wait for another thread keep the CPU.
static int may_block(int64_t num, const uint64_t *a)
{
	switch (num) {
	case 202: // futex: only the waiting kinds
		switch (a[1] & 0x7f) {
		case 0: case 6: case 9: case 11: case 13:
			return 1;
		}
		return 0;
	case 4: case 5: case 6: case 8: case 9: case 10: case 11: case 12: case 13: case 14: case 15: case 16: case 25:
	case 28: case 39: case 56: case 57: case 58: case 60: case 63: case 72: case 79: case 96: case 97: case 98: case 102: case 110:
	case 131: case 157: case 158: case 186: case 204: case 218: case 228: case 231: case 234: case 257: case 262:
	case 273: case 302: case 318: case 334: case 435:
		return 0;
	}
	return 1;
}

void sched_syscall(unsigned vcpu, int64_t num, const uint64_t *a)
{
	if (forked || owner != (int)vcpu)
		return;
	cur->sys_num = num;
	cur->arrivals = arrivals;
	memcpy(cur->sys_a, a, sizeof cur->sys_a);
	if (nthreads > 1 && may_block(num, a))
		leave_cpu(1);
}

void sched_sysret(unsigned vcpu)
{
	if (!forked && owner != (int)vcpu)
		acquire(vcpu);
}

// sched_woke: cur has woken n threads. Waking takes no virtual time, so they
// are waited for before cur runs on.
void sched_woke(int64_t n)
{
	int vcpu = owner;
	if (nthreads < 2 || n > MAXVCPU)
		return;
	pthread_mutex_lock(&mu);
	uint64_t want = cur->arrivals + n;
	while (arrivals < want) {
		struct timespec ts = soon();
		if (pthread_cond_timedwait(&turn, &mu, &ts))
			break;
	}
	pthread_mutex_unlock(&mu);
	if (owner == vcpu && waiters())
		leave_cpu(2);
	if (owner != vcpu)
		acquire(vcpu);
}

static void in_child(void)
{
	forked = 1;
	owner = -2;
	out_forget();
}

void sched_init(void) { pthread_atfork(NULL, NULL, in_child); }

// sched_end tells what the threads still alive have run.
void sched_end(void)
{
	for (int i = 0; i < MAXVCPU; i++) {
		Thread *t = threads[i];
		if (!t)
			continue;
		out_u8('Z');
		out_u32(t->index);
		out_lanes(clk(t));
		out_u64(t->insns), out_u64(t->calls), out_u64(t->branches);
	}
}
