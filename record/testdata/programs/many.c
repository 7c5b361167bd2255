// many THREADS CHILDREN N: THREADS threads at a time, then CHILDREN children
// one after the other, each of which calls work() N times.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sink;
static long n;

__attribute__((noinline)) void work(void) {
	for (int i = 0; i < 20000; i++)
		sink += i;
}

static void *run(void *arg) {
	for (long i = 0; i < n; i++)
		work();
	return arg;
}

int main(int argc, char **argv) {
	int threads = atoi(argv[1]), children = atoi(argv[2]);
	n = atol(argv[3]);
	pthread_t *t = calloc(threads, sizeof *t);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, run, NULL)) {
			perror("pthread_create");
			return 1;
		}
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < children; i++) {
		pid_t pid = fork();
		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (pid == 0) {
			run(NULL);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return 0;
}
