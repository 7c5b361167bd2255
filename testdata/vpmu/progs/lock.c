// Threads that share a lock, after Figure 3 of Lee 2015: both calls of
// compute run equally often, but a thread that waited for the lock comes to
// the first of them.
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;

__attribute__((noinline)) void compute(int size)
{
	unsigned long s = sink;
	for (int i = 0; i < size * 100; i++)
		s = s * 3 + i;
	sink = s;
}

__attribute__((noinline)) void first(void) { compute(1); sink++; }
__attribute__((noinline)) void second(void) { compute(1); sink++; }

static void *work(void *n)
{
	for (long i = 0; i < (long)n; i++) {
		pthread_mutex_lock(&lock);
		for (int j = 0; j < 50; j++)
			first();
		for (int j = 0; j < 50; j++)
			second();
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, (void *)(argc > 1 ? atol(argv[1]) : 100));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
