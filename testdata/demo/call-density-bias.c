/*
 * Figure 1 of B. Lee, "Adaptive Correction of Sampling Bias in Dynamic Call
 * Graphs", ACM TACO 12(4), 2015, in C: unequally spaced call events.
 *
 * Call sites C and D call compute equally often, but the calls from D take
 * twice as long, so a timer finds D running twice as often as C.
 *
 *   call-density-bias N
 */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noipa))

/* About 0.25 ms for each unit of size, long against the few microseconds that
   counting a call with a uprobe costs; with a tick each ms there are four calls
   from C, or two from D, between two ticks, as in Figure 2. */
#ifndef STEPS
#define STEPS 150000
#endif

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

static NOINLINE void dense(long repeat)
{
	for (long i = 0; i < repeat; i++)
		compute(1); /* C */
}

static NOINLINE void sparse(long repeat)
{
	for (long i = 0; i < repeat; i++)
		compute(2); /* D */
}

int main(int argc, char **argv)
{
	long n = argc == 2 ? atol(argv[1]) : 0;
	if (n <= 0) {
		fprintf(stderr, "usage: %s N\n", argv[0]);
		return 2;
	}
	dense(n);  /* A */
	sparse(n); /* B */
	return 0;
}
