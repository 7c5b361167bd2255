/*
 * Figure 3 of B. Lee, "Adaptive Correction of Sampling Bias in Dynamic Call
 * Graphs", ACM TACO 12(4), 2015, in C: unequally spaced sampling actions.
 *
 * Call sites A and B call compute equally often, but a thread always gets the
 * lock just before A: a tick that came while it waited, and is taken when it
 * runs again, is credited to A.
 *
 *   latency-bias THREADS ITERATIONS [wait]
 *
 * With "wait" the threads start to work when the process gets SIGUSR1, so that
 * a profiler can attach to each of them first.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noipa))

#ifndef STEPS
#define STEPS 25000
#endif
enum { CALLS = 50 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long iterations;

/*
 * Takes time in proportion to size. Its state is volatile so that it lives on
 * the stack: gcc gives a leaf function that does not use its stack no frame,
 * even with -fno-omit-frame-pointer, and a callchain taken there lacks the
 * immediate caller.
 */
static NOINLINE void compute(int size)
{
	volatile unsigned long x = 88172645463325252ul;
	for (long i = 0; i < (long)size * STEPS; i++) {
		unsigned long y = x;
		y ^= y << 13;
		y ^= y >> 7;
		y ^= y << 17;
		x = y;
	}
}

static NOINLINE void work(long n)
{
	for (long i = 0; i < n; i++) {
		pthread_mutex_lock(&lock);
		for (int j = 0; j < CALLS; j++)
			compute(1); /* A */
		for (int j = 0; j < CALLS; j++)
			compute(1); /* B */
		pthread_mutex_unlock(&lock);
	}
}

static void *run(void *unused)
{
	(void)unused;
	work(iterations);
	return NULL;
}

int main(int argc, char **argv)
{
	int wait = argc == 4 && !strcmp(argv[3], "wait");
	long threads = argc - wait == 3 ? atol(argv[1]) : 0;
	iterations = argc - wait == 3 ? atol(argv[2]) : 0;
	if (threads <= 0 || iterations <= 0) {
		fprintf(stderr, "usage: %s THREADS ITERATIONS [wait]\n", argv[0]);
		return 2;
	}

	int sig;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);

	pthread_t *workers = calloc(threads, sizeof *workers);
	if (!workers)
		return 1;
	pthread_mutex_lock(&lock); /* holds all of them back */
	for (long i = 0; i < threads; i++)
		if (pthread_create(&workers[i], NULL, run, NULL)) {
			perror("pthread_create");
			return 1;
		}
	if (wait)
		sigwait(&set, &sig);
	pthread_mutex_unlock(&lock);
	for (long i = 0; i < threads; i++)
		pthread_join(workers[i], NULL);
	free(workers);
	return 0;
}
