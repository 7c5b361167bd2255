// What really happened: call edges, calling contexts, conditional branches
// and acyclic paths, counted exactly. Memory follows the number of distinct
// edges, contexts, branches and paths, not the length of the run.
#include "vpmu.h"
#include <stdlib.h>
#include <string.h>

Tree cct, paths;
static Place *places;
static uint32_t nplaces, *place_idx;
static uint64_t place_mask;

typedef struct { uint32_t site, callee; uint64_t calls; } Edge;
static Edge **edges; // allocated singly: blocks keep pointers to the counts
static uint64_t nedges, edge_mask;

#define NCOND (1 << 16)
static Cond *conds[NCOND];

static void *grow(void *p, uint64_t n, size_t size)
{
	p = realloc(p, n * size);
	if (!p)
		abort();
	return p;
}

static uint64_t place_key(uint32_t image, uint64_t off) { return mix(off ^ (uint64_t)image << 48); }

static void place_rehash(void)
{
	place_mask = place_mask ? place_mask * 2 + 1 : 0xffff;
	free(place_idx);
	place_idx = calloc(place_mask + 1, sizeof *place_idx);
	places = grow(places, (place_mask + 1) / 2 + 2, sizeof *places);
	for (uint32_t i = 1; i < nplaces; i++) {
		uint64_t h = place_key(places[i].image, places[i].off) & place_mask;
		while (place_idx[h])
			h = (h + 1) & place_mask;
		place_idx[h] = i;
	}
}

// place_of numbers a place in an image; 0 is no place.
uint32_t place_of(uint32_t image, uint64_t off)
{
	uint64_t h = place_key(image, off) & place_mask;
	for (; place_idx[h]; h = (h + 1) & place_mask) {
		Place *p = &places[place_idx[h]];
		if (p->off == off && p->image == image)
			return place_idx[h];
	}
	if (nplaces > place_mask / 2) {
		place_rehash();
		return place_of(image, off);
	}
	places[nplaces] = (Place){image, off};
	return place_idx[h] = nplaces++;
}

const Place *place_at(uint32_t id) { return &places[id]; }

static void edge_rehash(void)
{
	uint64_t old = edge_mask;
	Edge **e = edges;
	edge_mask = old ? old * 2 + 1 : 0x3fff;
	edges = calloc(edge_mask + 1, sizeof *edges);
	for (uint64_t i = 0; e && i <= old; i++) {
		if (!e[i])
			continue;
		uint64_t h = mix((uint64_t)e[i]->site << 32 | e[i]->callee) & edge_mask;
		while (edges[h])
			h = (h + 1) & edge_mask;
		edges[h] = e[i];
	}
	free(e);
}

uint64_t *edge_of(uint32_t site, uint32_t callee)
{
	uint64_t h = mix((uint64_t)site << 32 | callee) & edge_mask;
	for (; edges[h]; h = (h + 1) & edge_mask)
		if (edges[h]->site == site && edges[h]->callee == callee)
			return &edges[h]->calls;
	if (nedges > edge_mask / 2) {
		edge_rehash();
		return edge_of(site, callee);
	}
	edges[h] = calloc(1, sizeof(Edge));
	*edges[h] = (Edge){site, callee, 0};
	nedges++;
	return &edges[h]->calls;
}

Cond *cond_of(const Block *b, uint32_t target, uint32_t fall)
{
	Cond **head = &conds[mix(b->site) % NCOND];
	for (Cond *c = *head; c; c = c->next)
		if (c->place == b->site && c->target == target)
			return c;
	Cond *c = calloc(1, sizeof *c);
	*c = (Cond){b->site, target, fall, 0, 0, *head};
	return *head = c;
}

static uint64_t node_key(uint32_t parent, uint32_t site, uint32_t callee)
{
	return mix(((uint64_t)parent << 32 | site) ^ (uint64_t)callee * 0x9e3779b97f4a7c15);
}

static void tree_rehash(Tree *t)
{
	t->mask = t->mask ? t->mask * 2 + 1 : 0xffff;
	t->cap = (t->mask + 1) / 2 + 2;
	free(t->idx);
	t->idx = calloc(t->mask + 1, sizeof *t->idx);
	t->v = grow(t->v, t->cap, sizeof *t->v);
	for (uint32_t i = 1; i < t->n; i++) {
		Node *n = &t->v[i];
		uint64_t h = node_key(n->parent, n->site, n->callee) & t->mask;
		while (t->idx[h])
			h = (h + 1) & t->mask;
		t->idx[h] = i;
	}
}

// tree_child finds or makes the child of parent reached by (site, callee).
// A full tree answers with the root, and counts what that loses.
uint32_t tree_child_slow(Tree *t, uint32_t parent, uint32_t site, uint32_t callee)
{
	uint64_t h = node_key(parent, site, callee) & t->mask;
	for (; t->idx[h]; h = (h + 1) & t->mask) {
		Node *n = &t->v[t->idx[h]];
		if (n->parent == parent && n->site == site && n->callee == callee)
			return t->v[parent].last = t->idx[h];
	}
	if (t->n >= t->max) {
		++*t->lost;
		return 0;
	}
	if (t->n > t->mask / 2) {
		tree_rehash(t);
		return tree_child_slow(t, parent, site, callee);
	}
	t->v[t->n] = (Node){parent, site, callee, 0, 0};
	t->idx[h] = t->n;
	return t->v[parent].last = t->n++;
}

void truth_init(void)
{
	nplaces = 1;
	place_rehash();
	edge_rehash();
	for (int i = 0; i < 2; i++) {
		Tree *t = i ? &paths : &cct;
		t->n = 1;
		t->max = 48u << 20;
		t->lost = &odd[i ? ODD_PATHLOST : ODD_CTXLOST];
		tree_rehash(t);
		memset(t->v, 0, sizeof *t->v);
	}
}

static void write_tree(char kind, const Tree *t)
{
	out_u8(kind);
	out_u32(t->n);
	for (uint32_t i = 1; i < t->n; i++) {
		const Node *n = &t->v[i];
		out_u32(n->parent), out_u32(n->site), out_u32(n->callee), out_u64(n->calls);
	}
}

void truth_write(void)
{
	out_u8('P');
	out_u32(nplaces);
	for (uint32_t i = 1; i < nplaces; i++)
		out_u32(places[i].image), out_u64(places[i].off);
	out_u8('E');
	out_u32(nedges);
	for (uint64_t i = 0; i <= edge_mask; i++)
		if (edges[i])
			out_u32(edges[i]->site), out_u32(edges[i]->callee), out_u64(edges[i]->calls);
	uint32_t n = 0;
	for (int i = 0; i < NCOND; i++)
		for (Cond *c = conds[i]; c; c = c->next)
			n++;
	out_u8('B');
	out_u32(n);
	for (int i = 0; i < NCOND; i++)
		for (Cond *c = conds[i]; c; c = c->next)
			out_u32(c->place), out_u32(c->target), out_u32(c->fall), out_u64(c->taken), out_u64(c->not_taken);
	write_tree('N', &cct);
	write_tree('L', &paths);
	out_u8('O');
	out_u32(ODD_N);
	for (int i = 0; i < ODD_N; i++)
		out_u64(odd[i]);
}
