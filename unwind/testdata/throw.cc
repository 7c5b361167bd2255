// C++ with exceptions, templates, a stack realigned for vectors, alloca, and threads.
// g++ -O2 -pthread -o throw throw.cc
#include <alloca.h>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

typedef double v4 __attribute__((vector_size(32)));

__attribute__((noinline)) static double vec(int n)
{
	volatile v4 a = {1. * n, 2, 3, 4}; // needs 32-byte alignment: CFA by expression
	double s = 0;
	for (int i = 0; i < n; i++)
		a += a * 0.5, s += a[i & 3];
	return s;
}

__attribute__((noinline)) static double dynamic(int n)
{
	double *p = (double *)alloca(n * sizeof(double)), s = 0;
	for (int i = 0; i < n; i++)
		p[i] = i + vec(8);
	for (int i = 0; i < n; i++)
		s += p[i];
	return s;
}

__attribute__((noinline)) static int deep(int n)
{
	if (n == 0)
		throw std::runtime_error("deep");
	std::string s(n, 'x');
	return deep(n - 1) + (int)s.size();
}

static void run()
{
	std::map<std::string, double> m;
	for (int i = 0; i < 20000; i++) {
		try {
			deep(i % 20);
		} catch (const std::exception &e) {
			m[e.what() + std::to_string(i % 977)] += dynamic(i % 100);
		}
	}
}

int main()
{
	std::vector<std::thread> t;
	for (int i = 0; i < 2; i++)
		t.emplace_back(run);
	for (auto &x : t)
		x.join();
}
