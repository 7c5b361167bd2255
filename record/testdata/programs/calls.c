// calls N: N times work() from often() and N times from seldom(), which takes
// ten times as long. The number of calls of work is 2N.
#include <stdlib.h>

static volatile int sink;

__attribute__((noinline)) void spin(int n) {
	for (int i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline)) void work(void) {
	spin(300);
	sink++;
}

__attribute__((noinline)) void often(void) {
	work();
	sink++;
}

__attribute__((noinline)) void seldom(void) {
	work();
	spin(3000);
	sink++;
}

int main(int argc, char **argv) {
	for (long n = atol(argv[1]); n > 0; n--) {
		often();
		seldom();
	}
	return argc > 2 ? atoi(argv[2]) : 0;
}
