/* Calls of every kind: direct, through a pointer, into libc through the PLT,
 * and of a function that never returns, which ends its caller. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int __attribute__((noinline)) leaf(int x)
{
	return x * 3 + 1;
}
static inline int inl(int x) {
	return leaf(x) ^ x;
}
int visit(int n) {
	int s = 0;
	for (int i = 0; i < n; i++)
		s += inl(i);
	return s;
}
int cmpi(const void *a, const void *b) { return *(int*)a - *(int*)b; }
int main(int argc, char **argv) {
	int a[100];
	for (int i = 0; i < 100; i++) a[i] = visit(i);
	qsort(a, 100, sizeof a[0], cmpi);
	if (argc > 5) abort();
	int (*volatile indirect)(int) = visit;
	a[0] += indirect(3);
	printf("%d\n", a[argc]);
	return 0;
}
