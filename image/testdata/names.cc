// Names of every kind: templates, operators, anonymous namespaces, lambdas,
// constructors, and a declaration spread over several lines.
#include <map>
#include <string>
#include <vector>
#include <algorithm>
#include <iostream>
struct Base { virtual int f(int) = 0; virtual ~Base() {} };
struct D1 : Base { int k; D1(int k): k(k) {} int f(int x) override { return x + k; } };
template <class T> struct Box { T v; template <class U> __attribute__((noinline)) T get(U u) const { return v + (T)u; } };
namespace { __attribute__((noinline)) int anon(int x) { return x ^ 5; } }
namespace ns { 
struct Q { int operator()(int a) const; static int st(int); };
__attribute__((noinline)) int Q::operator()(int a) const { return a*2; } 
__attribute__((noinline)) 
int
Q::st(int a)
{
  return a*7+anon(a); }
}
int main() {
  std::map<std::string, int> m; std::vector<int> v;
  D1 d(3); Base *b = &d; Box<long> box{4};
  for (int i = 0; i < 100; i++) { m[std::to_string(i)] = b->f(i); v.push_back(box.get<short>(i) + ns::Q()(i) + ns::Q::st(i)); }
  std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
  try { throw 5; } catch (int) {}
  std::cout << m["5"] << v[3] << "\n";
}
