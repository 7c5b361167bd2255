// A program whose call counts are known: every kind of call the truth has a
// convention for. Built with -O2 -pthread; see TestKnownCounts.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
static volatile long sink;
static jmp_buf env;

NOINLINE void leaf(void) { sink++; }
NOINLINE void tail(void) { leaf(); sink++; }
NOINLINE void tail_caller(void) { sink++; tail(); } // a jump: the edge is main -> tail_caller
NOINLINE void deep(int n)
{
	if (n == 0)
		longjmp(env, 1);
	deep(n - 1);
	sink++;
}
NOINLINE void thrower(void) { deep(9); sink++; }
NOINLINE void after_jump(void) { sink++; leaf(); sink++; }
NOINLINE long recurse(int n) { return n ? recurse(n - 1) + sink : sink; }
NOINLINE int compare(const void *a, const void *b) { sink++; return *(const int *)a - *(const int *)b; }
NOINLINE void on_signal(int sig) { (void)sig; leaf(); sink++; }
NOINLINE void *worker(void *arg)
{
	for (long i = 0; i < (long)arg; i++)
		leaf();
	return NULL;
}
NOINLINE void indirect(void (*f)(void)) { f(); sink++; }
NOINLINE void branches(int n)
{
	for (int i = 0; i < n; i++)
		if (i % 4 == 0)
			leaf();
}

int main(void)
{
	for (int i = 0; i < 1000; i++)
		tail_caller();
	for (int i = 0; i < 50; i++)
		if (!setjmp(env))
			thrower();
		else
			after_jump();
	for (int i = 0; i < 10; i++)
		sink += recurse(20);
	for (int i = 0; i < 300; i++)
		indirect(i % 3 ? leaf : tail);
	branches(4000);
	for (int i = 0; i < 77; i++)
		sink += strtol("12", NULL, 10); // through the PLT
	int v[5] = {5, 3, 1, 4, 2};
	qsort(v, 5, sizeof *v, compare);
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 20; i++)
		raise(SIGUSR1);
	pthread_t t[3];
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, worker, (void *)(1000 + i));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}
