/* Functions whose fast path needs no frame (gcc shrink-wraps them), frameless
 * leaves, recursion, and calls into libc, which keeps no frame pointers.
 * gcc -O2 -g -fno-omit-frame-pointer -o shrink shrink.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

struct node { struct node *left, *right; long key; };

static unsigned long seed = 42;
NOINLINE static unsigned long rnd(void) { return seed = seed * 6364136223846793005ul + 1442695040888963407ul; }

NOINLINE static long slow(struct node *n, long x)
{
	char buf[64];
	memset(buf, '0' + (n->key ^ x) % 10, sizeof buf - 1);
	buf[1 + (x & 15)] = 0;
	return strtol(buf, NULL, 10) + strlen(buf) + n->key;
}

/* fast path: no frame; slow path: a call */
NOINLINE static long probe(struct node *n, long x)
{
	long k = n->key;
	if ((k & 15) != (x & 15))
		return k * 3 + x;
	return slow(n, x) + k;
}

NOINLINE static long leaf(long a, long b)
{
	for (int i = 0; i < 4; i++)
		a = a * b + (a >> 3);
	return a;
}

NOINLINE static long walk(struct node *n, long x)
{
	if (!n)
		return x;
	return walk(n->left, probe(n, x)) + walk(n->right, leaf(x, n->key));
}

NOINLINE static struct node *insert(struct node *t, struct node *n)
{
	if (!t)
		return n;
	if (n->key < t->key)
		t->left = insert(t->left, n);
	else
		t->right = insert(t->right, n);
	return t;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100;
	struct node *t = NULL;
	for (int i = 0; i < 4000; i++) {
		struct node *n = calloc(1, sizeof *n);
		n->key = rnd() >> 20;
		t = insert(t, n);
	}
	long s = 0;
	for (int i = 0; i < rounds; i++)
		s += walk(t, i);
	printf("%ld\n", s);
	return 0;
}
