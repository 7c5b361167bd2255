/* Time spent in a signal handler, on the program's stack or (any argument) on
 * another one, below code that was interrupted.
 * gcc -O1 -fno-optimize-sibling-calls -o signal signal.c */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned long n;
static volatile int done;

__attribute__((noinline)) static void work(void)
{
	for (int i = 0; i < 3000000; i++)
		n += i;
}

static void handler(int sig)
{
	work();
	done += sig == SIGPROF;
}

__attribute__((noinline)) static void interrupted(void)
{
	while (done < 60)
		n++;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = handler };
	stack_t ss = { .ss_size = 1 << 16, .ss_sp = malloc(1 << 16) };
	(void)argv;
	if (argc > 1) {
		sigaltstack(&ss, NULL);
		sa.sa_flags = SA_ONSTACK;
	}
	sigaction(SIGPROF, &sa, NULL);
	struct itimerval it = { { 0, 5000 }, { 0, 5000 } };
	setitimer(ITIMER_PROF, &it, NULL);
	interrupted();
	return 0;
}
