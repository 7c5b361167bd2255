// Translated blocks: decoding of the last instruction, cost, identity. A
// block translated again (the code cache was flushed, threads began) is the
// same Block, so counts and pointers to it stay good.
#include "vpmu.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NBLOCK (1 << 18)
static Block *blocks[NBLOCK];
Block start_block = {.end = END_START};

static struct { uint64_t handler, restorer; } handlers[256];
static int nhandlers;

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static double unit(uint64_t x) { return ((x >> 11) + 0.5) / 9007199254740992.0; }

// factor is lognormal with mean 1; the same image, offset and seed give the
// same factor wherever the image was mapped.
static double factor(double sigma, uint64_t seed, uint64_t image, uint64_t off)
{
	uint64_t h = mix(mix(seed) ^ image ^ mix(off));
	double z = sqrt(-2 * log(unit(h))) * cos(6.283185307179586 * unit(mix(h)));
	return exp(sigma * z - sigma * sigma / 2);
}

// modrm_len is how long a ModRM byte, SIB and displacement are.
static size_t modrm_len(const uint8_t *m, size_t have)
{
	int mod = m[0] >> 6, rm = m[0] & 7;
	size_t n = 1;
	if (mod == 3)
		return n;
	if (rm == 4) {
		n++;
		if (have > 1 && mod == 0 && (m[1] & 7) == 5)
			n += 4;
	} else if (mod == 0 && rm == 5) {
		n += 4;
	}
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static void decode(Block *b, const uint8_t *c, size_t size, uint64_t vaddr)
{
	size_t i = 0;
	int rep = 0;
	for (; i < size && strchr("\x66\x67\xf2\xf3\x2e\x3e\x26\x36\x64\x65\xf0", c[i]) && c[i]; i++)
		rep |= c[i] == 0xf2 || c[i] == 0xf3;
	if (i < size && (c[i] & 0xf0) == 0x40)
		i++;
	if (i >= size)
		return;
	uint8_t op = c[i++], sub = i < size ? c[i] : 0;
	uint64_t next = vaddr + size;
	int32_t rel32 = 0;
	if (size >= 4)
		memcpy(&rel32, c + size - 4, 4);
	int8_t rel8 = c[size - 1];
	// An instruction across a page boundary is given up by the translator and
	// begins the next block, but we are told of its first bytes: only whole
	// instructions count as branches. block_shorten does the rest.
	size_t want = i;
	if (op == 0xe8 || op == 0xe9)
		want += 4;
	else if (op == 0xeb || (op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0)
		want += 1;
	else if (op == 0x0f && (sub & 0xf0) == 0x80)
		want += 5;
	else if (op == 0x0f && sub == 0x05)
		want += 1;
	else if (op == 0xc2 || op == 0xca)
		want += 2;
	else if (op == 0xff)
		want += i < size ? modrm_len(c + i, size - i) : 1;
	if (want > size)
		return;
	b->branch = 1;
	if (op == 0xe8)
		b->end = END_CALL, b->target = next + rel32;
	else if (op == 0xe9)
		b->end = END_JMP, b->target = next + rel32;
	else if (op == 0xeb)
		b->end = END_JMP, b->target = next + rel8;
	else if ((op >= 0x70 && op < 0x80) || (op >= 0xe0 && op <= 0xe3))
		b->end = END_COND, b->target = next + rel8;
	else if (op == 0x0f && sub >= 0x80 && sub < 0x90)
		b->end = END_COND, b->target = next + rel32;
	else if (op == 0xff && ((sub >> 3 & 7) == 2 || (sub >> 3 & 7) == 3))
		b->end = END_CALLI;
	else if (op == 0xff && ((sub >> 3 & 7) == 4 || (sub >> 3 & 7) == 5))
		b->end = END_JMPI;
	else if (op == 0xc3 || op == 0xcb)
		b->end = END_RET;
	else if (op == 0xc2 || op == 0xca)
		b->end = END_RET, b->ret_imm = c[i] | c[i + 1] << 8;
	else if (op == 0x0f && sub == 0x05)
		b->end = END_SYSCALL, b->branch = 0; // a branch into the kernel, which user-only events do not see
	else if (rep && ((op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf)))
		b->end = END_REP, b->branch = 0;
	else
		b->end = END_NONE, b->branch = 0;
}

static void price(Block *b, uint64_t last_off)
{
	for (int i = 0; i < LANES; i++) {
		int64_t c = 0, back = 0;
		// All blocks that end in one branch share its factor. Single steps
		// cannot see the branch ahead: there a line of code shares one.
		uint64_t key = singlestep ? last_off >> 4 : last_off;
		if (i < nlanes)
			switch (lane[i].kind) {
			case LANE_CYCLES:
				c = llround(b->n * UNIT * factor(lane[i].sigma, lane[i].seed, image_hash(b->image), key));
				c = c < 1 ? 1 : c;
				break;
			case LANE_INSNS:
				c = b->n * UNIT;
				back = UNIT;
				break;
			case LANE_CALLS:
				c = b->end == END_CALL || b->end == END_CALLI ? UNIT : 0;
				break;
			case LANE_BRANCHES:
				c = b->branch * UNIT;
				break;
			}
		b->cost[i] = c;
		b->rep_back[i] = back;
	}
}

static void *aligned(size_t n)
{
	void *p = NULL;
	if (posix_memalign(&p, 64, n))
		abort();
	return memset(p, 0, n);
}

Block *block_of(struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint64_t vaddr = qemu_plugin_tb_vaddr(tb), hash = 0, off, last_off;
	int plt, unused;
	struct qemu_plugin_insn *in = NULL;
	for (size_t i = 0; i < n; i++) {
		in = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *d = qemu_plugin_insn_data(in);
		for (size_t k = 0; k < qemu_plugin_insn_size(in); k++)
			hash = hash * 0x100000001b3 + d[k] + 1;
	}
	uint32_t image = image_at(vaddr, &off, &plt);
	Block **head = &blocks[mix(vaddr) % NBLOCK];
	for (Block *b = *head; b; b = b->next)
		if (b->vaddr == vaddr && b->told == n && b->hash == hash && b->image == image && place_at(b->place)->off == off)
			return b;
	Block *b = aligned(sizeof *b);
	b->vaddr = vaddr, b->n = b->told = n, b->hash = hash, b->image = image, b->flags = plt;
	b->last = qemu_plugin_insn_vaddr(in);
	b->fall = b->last + qemu_plugin_insn_size(in);
	b->at = calloc(n, sizeof *b->at);
	for (size_t i = 0; i < n; i++)
		b->at[i] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i)) - vaddr;
	decode(b, qemu_plugin_insn_data(in), qemu_plugin_insn_size(in), b->last);
	image_at(b->last, &last_off, &unused);
	b->place = place_of(image, off);
	b->site = place_of(image, last_off);
	if (b->flags & BLK_PLT0) { // a .plt without lazy binding starts with a stub
		const uint8_t *d = qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, 0));
		if (d[0] != 0xff || d[1] != 0x35)
			b->flags &= ~BLK_PLT0;
	}
	price(b, last_off);
	if (b->end == END_COND) {
		uint64_t t, f;
		uint32_t ti = image_at(b->target, &t, &unused), fi = image_at(b->fall, &f, &unused);
		b->cond = cond_of(b, place_of(ti, t), place_of(fi, f));
	}
	for (int i = 0; i < nhandlers; i++)
		if (handlers[i].handler == vaddr)
			b->flags |= BLK_HANDLER;
	b->next = *head;
	return *head = b;
}

// block_shorten takes off the last instruction, which turned out to belong to
// the next block.
void block_shorten(Block *b)
{
	uint64_t off;
	int unused;
	b->fall = b->last;
	b->last = b->vaddr + b->at[--b->n - 1];
	b->end = END_NONE, b->branch = 0;
	image_at(b->last, &off, &unused);
	b->site = place_of(b->image, off);
	price(b, off);
}

// block_handler notes a signal handler, so that its start is told from a call.
void block_handler(uint64_t vaddr, uint64_t restorer)
{
	for (int i = 0; i < nhandlers; i++)
		if (handlers[i].handler == vaddr && handlers[i].restorer == restorer)
			return;
	if (nhandlers == 256)
		return;
	handlers[nhandlers].handler = vaddr;
	handlers[nhandlers++].restorer = restorer;
	for (Block *b = blocks[mix(vaddr) % NBLOCK]; b; b = b->next)
		if (b->vaddr == vaddr)
			b->flags |= BLK_HANDLER;
}

int is_restorer(uint64_t addr)
{
	for (int i = 0; i < nhandlers; i++)
		if (handlers[i].restorer == addr)
			return 1;
	return 0;
}
