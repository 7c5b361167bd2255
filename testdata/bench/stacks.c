/*
 * Makes many distinct call stacks: random call trees, 8 to 16 deep, over
 * 2048 functions. Recorded with "perf record -F max -g" nearly every sample
 * has a stack not seen before.
 *
 *   stacks SECONDS
 *
 * The functions are made by the preprocessor; each picks the next one from a
 * pseudo-random sequence and calls it through a table.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t state = 88172645463325252u;

static inline uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

typedef uint64_t function(int depth);
extern function *const table[2048];

/* Leaves work for some 100 ns, so that ticks mostly find the deep stacks. */
#define F(n) \
	__attribute__((noipa)) uint64_t f##n(int depth) \
	{ \
		volatile uint64_t x = n; /* on the stack: gcc makes a frame */ \
		if (depth <= 0) { \
			for (int i = 0; i < 50; i++) \
				x = x * 6364136223846793005u + 1; \
			return x; \
		} \
		uint64_t r = next_random(); \
		for (int i = 0; i <= (int)(r >> 62 & 1); i++) \
			x += table[(r >> (11 * i)) & 2047](depth - 1); \
		return x; \
	}

#define F8(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7)
#define F64(n) F8(n##0) F8(n##1) F8(n##2) F8(n##3) F8(n##4) F8(n##5) F8(n##6) F8(n##7)
#define F512(n) F64(n##0) F64(n##1) F64(n##2) F64(n##3) F64(n##4) F64(n##5) F64(n##6) F64(n##7)
F512(1) F512(2) F512(3) F512(4)

#define T(n) f##n,
#define T8(n) T(n##0) T(n##1) T(n##2) T(n##3) T(n##4) T(n##5) T(n##6) T(n##7)
#define T64(n) T8(n##0) T8(n##1) T8(n##2) T8(n##3) T8(n##4) T8(n##5) T8(n##6) T8(n##7)
#define T512(n) T64(n##0) T64(n##1) T64(n##2) T64(n##3) T64(n##4) T64(n##5) T64(n##6) T64(n##7)
function *const table[2048] = { T512(1) T512(2) T512(3) T512(4) };

int main(int argc, char **argv)
{
	double seconds = argc == 2 ? atof(argv[1]) : 0;
	if (seconds <= 0) {
		fprintf(stderr, "usage: %s SECONDS\n", argv[0]);
		return 2;
	}
	struct timespec start, now;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		uint64_t r = next_random();
		table[r & 2047](8 + (r >> 32) % 9);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec + (now.tv_nsec - start.tv_nsec) * 1e-9 < seconds);
	return 0;
}
