#include <vector>
#include <algorithm>
#include <map>
#include <string>
#include <cstdio>
namespace ns { struct A { int v; int get(int k) const { int s=0; for(int i=0;i<k;i++) s+=v*i^s; return s; } 
 template<class T> static inline T tw(T x){ A a{(int)x}; return a.get(100)+a.get(50);} }; 
namespace { inline int anon(int x){ return A::tw<int>(x)+1; } }
inline int outer(int x){ auto l=[&](int y){return anon(y)+x;}; return l(x)+l(x+1);} }
extern "C" inline int cfun(int x){ return ns::outer(x); }
static inline int sfun(int x){ return cfun(x); }
__attribute__((noinline)) int work(int n){ std::vector<int> v; for(int i=0;i<n;i++) v.push_back(sfun(i)%1000); std::sort(v.begin(),v.end()); int s=0; for(int x:v) s+=x; return s; }
int main(int c,char**){ int s=0; for(int i=0;i<200*c;i++) s+=work(200+i); printf("%d\n",s); }
