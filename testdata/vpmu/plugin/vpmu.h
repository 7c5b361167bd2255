// Shared types of the virtual PMU plugin. See ../README.md for the model.
#ifndef VPMU_H
#define VPMU_H

#include "qemu_api.h"
#ifdef __AVX__
#include <immintrin.h>
#endif

#pragma GCC visibility push(hidden) // or every variable goes through the GOT

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#ifndef LANES
#define LANES 4 // clocks kept side by side; a multiple of 4
#endif
#define UNIT 256 // parts of a cycle in which costs are kept
#define LBR 32   // branch records, as on Intel since Skylake
#define RING 64  // kept, so that the oldest shown has its cycles
#define MAXSAMPLERS 64
#define FAR ((int64_t)1 << 61) // "never" as distance on a clock

// A value per lane. GCC splits it into as many vector registers as it takes.
typedef int64_t lanes __attribute__((vector_size(LANES * 8)));

// below_zero reports whether any lane is negative.
static inline int below_zero(lanes v)
{
	int64_t any = 0;
#ifdef __AVX__
	__m256i bits[LANES / 4];
	__builtin_memcpy(bits, &v, sizeof v);
	for (int i = 0; i < LANES / 4; i++)
		any |= _mm256_movemask_pd(_mm256_castsi256_pd(bits[i]));
	return any != 0;
#else
	for (int i = 0; i < LANES; i++)
		any |= v[i];
	return any < 0;
#endif
}

// How a block ends.
enum end { END_NONE, END_COND, END_JMP, END_JMPI, END_CALL, END_CALLI, END_RET, END_SYSCALL, END_REP, END_START };

enum { BLK_PLT = 1, BLK_PLT0 = 2, BLK_HANDLER = 4 };

// A Cond counts one conditional branch, whichever blocks it ends.
typedef struct Cond {
	uint32_t place, target, fall; // of the branch and of both successors
	uint64_t taken, not_taken;
	struct Cond *next;
} Cond;

// A Block is one translated block: a run of instructions with one way in.
// Blocks may overlap: a jump into the middle of one makes another.
typedef struct Block {
	lanes cost;      // in UNITs, per lane
	lanes rep_back;  // what a further round of a repeated string instruction must not count again
	uint64_t vaddr, last, fall, target; // first and last instruction, what follows, direct target
	uint32_t n, told; // instructions; as many as the translator told of
	uint8_t end, flags, branch; // branch: 1 if the last instruction is one
	uint16_t ret_imm; // bytes a return takes off the stack beside the address
	uint32_t place, site; // of the first and the last instruction
	uint32_t callee;  // inline cache of one call edge
	uint64_t *edge;
	Cond *cond;
	uint16_t *at;     // offset of each instruction
	uint32_t image;
	uint64_t hash;    // of the code bytes
	struct Block *next;
} Block;

// A Frame is an activation that has not returned. It holds what its caller
// must get back.
typedef struct {
	uint64_t ret, slot; // return address and where on the stack it lies (0: unknown)
	uint64_t to;        // first block entered, the PLT stub if there is one
	const Block *site;  // block that ends in the call
	uint32_t ctx, path, func; // the caller's
	uint8_t resolver, signal;
	lanes clk;          // when the call happened
} Frame;

typedef struct { Frame *f; uint32_t n, cap; uint64_t g, hi; } Stack;

typedef struct { const Block *from; uint64_t to; lanes clk; } Br;

typedef struct {
	uint64_t vals[4]; // cycles of the sampler's time lane, near calls, instructions, branches
	uint64_t leader;
} Counts;

// SState is a sampler's state for one thread.
typedef struct {
	uint64_t rng;
	int64_t due;       // on the thread's clock of the count lane, UNITs
	int64_t period;    // of the tick that is due
	int64_t start;     // of the leader's counter
	int64_t pend_period;
	int64_t skid_left; // instructions still to run
	int64_t seen;      // wall ticks noticed
	uint8_t pend;      // 0, PEND_SKID, PEND_CALL
	uint8_t off;       // multiplexed out
	int64_t toggle;    // when that changes
	Counts gone, off_at; // counted while out; counters when it went out
	int64_t gone_time, off_time;
} SState;
enum { PEND_SKID = 1, PEND_CALL = 2 };

enum { BR_NONE, BR_ANY, BR_CALL, BR_STACK };
enum { CHAIN_NONE, CHAIN_EXACT, CHAIN_FP };
enum { CLOCK_THREAD, CLOCK_WALL };

typedef struct {
	int lane, time;    // what is counted to the next tick; which cycles give the time
	int64_t period;    // UNITs
	double jitter;     // periods vary by this fraction, evenly around period
	uint64_t seed;
	int skid, clock, defer, branch, chain, maxstack, regs;
	uint32_t stack;    // bytes of stack to dump
	int64_t mux_on, mux_off; // UNITs of thread time, 0: always on
	int64_t wall_due, wall_period, wall_tick, wall_at, wall_start; // the running wall timer
	uint64_t rng;
} Sampler;

enum { LANE_CYCLES, LANE_INSNS, LANE_CALLS, LANE_BRANCHES };
typedef struct { int kind; double sigma; uint64_t seed; } Lane;

typedef struct {
	lanes left, base;  // clock = base - left; left < 0: something is due
	const Block *prev;
	uint64_t insns, calls, branches;
	uint32_t ctx, path, func;
	Stack *st;
	const uint64_t *env; // the emulator's registers of this vcpu
	uint32_t any_n, call_n; // records ever written
	int defer_mask;    // samplers that wait for a call
	uint32_t index;    // number of the thread, in order of creation
	int pending;       // a call that is still inside PLT stubs: 1, through PLT0: 2
	const Block *pend_site;
	uint64_t pend_to;
	lanes walloff;     // wall clock minus own clock
	int out;           // switched out: 1 blocked, 2 preempted, 3 gone
	int sigret, nsaved;
	const Block *saved[16]; // blocks before interrupted places
	int64_t sys_num, sys_a[6];
	uint64_t arrivals; // threads that had queued for the CPU when the call began
	int64_t vr;        // what its clock lacks to its virtual run time
	Stack *own;
	SState s[MAXSAMPLERS];
	Br any[RING], call[RING];
} Thread;

// Configuration and global state (vpmu.c).
extern Lane lane[LANES];
extern int nlanes, nsamplers, want_any, want_call, want_path, want_cct, want_truth, singlestep, regs_ok, go_program;
extern Sampler sampler[MAXSAMPLERS];
extern Thread *cur;            // the thread that has the virtual CPU
extern lanes wall;             // its wall clock when nobody runs
extern int64_t slice, slice_end; // UNITs of lane 0; end on cur's clock
static inline lanes clk(const Thread *t) { return t->base - t->left; }

// Counts of what does not fit the model, written with the truth.
enum { ODD_RET, ODD_UNEXPECTED, ODD_POPPED, ODD_SIGNALS, ODD_DEPTH, ODD_FORKS, ODD_STEALS, ODD_PATHCUT, ODD_PATHLOST, ODD_CTXLOST, ODD_N };
extern uint64_t odd[ODD_N];

// truth.c
typedef struct { uint32_t image; uint64_t off; } Place;
uint32_t place_of(uint32_t image, uint64_t off);
const Place *place_at(uint32_t id);
uint64_t *edge_of(uint32_t site, uint32_t callee);
Cond *cond_of(const Block *b, uint32_t target, uint32_t fall);
typedef struct { uint32_t parent, site, callee, last; uint64_t calls; } Node;
typedef struct { Node *v; uint32_t n, cap, *idx; uint64_t mask; uint32_t max; uint64_t *lost; } Tree;
extern Tree cct, paths;
uint32_t tree_child_slow(Tree *, uint32_t parent, uint32_t site, uint32_t callee);
static inline uint32_t tree_child(Tree *tr, uint32_t parent, uint32_t site, uint32_t callee)
{
	uint32_t c = tr->v[parent].last;
	if (LIKELY(tr->v[c].site == site && tr->v[c].callee == callee && tr->v[c].parent == parent && c))
		return c;
	return tree_child_slow(tr, parent, site, callee);
}
void truth_init(void);
void truth_write(void);

// image.c
void image_init(void);
void image_start(void);
uint32_t image_at(uint64_t vaddr, uint64_t *off, int *plt);
uint64_t image_hash(uint32_t image);
void image_map(uint64_t addr, uint64_t len, int prot, int flags, int fd, uint64_t off, int64_t ret);
void image_unmap(uint64_t addr, uint64_t len);
void image_protect(uint64_t addr, uint64_t len, int prot);
int image_is_go(void);
void image_write(void);

// block.c
Block *block_of(struct qemu_plugin_tb *);
void block_shorten(Block *);
void block_handler(uint64_t vaddr, uint64_t restorer);
int is_restorer(uint64_t addr);
uint64_t mix(uint64_t);
extern Block start_block;

// sched.c
int enter(unsigned vcpu, const uint64_t *env); // 0: this process is not recorded
void leave_cpu(int how);
void sched_init(void);
void sched_syscall(unsigned vcpu, int64_t num, const uint64_t *a);
void sched_sysret(unsigned vcpu);
void sched_woke(int64_t n);
void thread_new(unsigned vcpu);
void thread_exit(unsigned vcpu);
int waiters(void);
extern volatile int owner;    // vcpu that has the virtual CPU, -1 none
extern volatile int busy;     // set while its callback runs
extern int nthreads, forked;
lanes now_wall(void);
void sched_end(void);

// sample.c
void due(Thread *, const Block *);
void deferred(Thread *, const Block *);
void samplers_start(Thread *);
void rearm(Thread *);

// out.c: the event stream, little endian
void out_open(const char *path);
void out_close(void);
void out_bytes(const void *, size_t);
void out_u8(uint8_t);
void out_u32(uint32_t);
void out_u64(uint64_t);
void out_str(const char *);
void out_lanes(lanes);
void out_forget(void);

#pragma GCC visibility pop

#endif
