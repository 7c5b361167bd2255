// A C++ program with virtual calls: a scene of shapes is simulated, sorted
// and measured through abstract classes, templates and std::function.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

uint32_t state = 12345;
uint32_t next() {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

struct Visitor;

struct Shape {
  double x = 0, y = 0;
  virtual ~Shape() = default;
  virtual double area() const = 0;
  virtual void step(double dt) { x += dt * 0.5; }
  virtual void accept(Visitor &v) const = 0;
};

struct Circle;
struct Rect;
struct Group;

struct Visitor {
  virtual ~Visitor() = default;
  virtual void visit(const Circle &) = 0;
  virtual void visit(const Rect &) = 0;
  virtual void visit(const Group &) = 0;
};

struct Circle : Shape {
  double r;
  explicit Circle(double r) : r(r) {}
  double area() const override { return 3.14159265 * r * r; }
  void step(double dt) override { y += r * dt; }
  void accept(Visitor &v) const override { v.visit(*this); }
};

struct Rect : Shape {
  double w, h;
  Rect(double w, double h) : w(w), h(h) {}
  double area() const override { return w * h; }
  void accept(Visitor &v) const override { v.visit(*this); }
};

struct Group : Shape {
  std::vector<std::unique_ptr<Shape>> parts;
  double area() const override {
    double a = 0;
    for (auto &p : parts)
      a += p->area();
    return a;
  }
  void step(double dt) override {
    Shape::step(dt);
    for (auto &p : parts)
      p->step(dt);
  }
  void accept(Visitor &v) const override { v.visit(*this); }
};

struct Describe : Visitor {
  std::map<std::string, int> seen;
  void visit(const Circle &c) override { seen["circle" + std::to_string(int(c.r))]++; }
  void visit(const Rect &r) override { seen["rect" + std::to_string(int(r.w))]++; }
  void visit(const Group &g) override {
    seen["group"]++;
    for (auto &p : g.parts)
      p->accept(*this);
  }
};

std::unique_ptr<Shape> make(int depth) {
  switch (next() % (depth > 0 ? 5 : 2)) {
  case 0:
    return std::make_unique<Circle>(1 + next() % 9);
  case 1:
    return std::make_unique<Rect>(1 + next() % 5, 1 + next() % 7);
  }
  auto g = std::make_unique<Group>();
  for (unsigned i = 0, n = 1 + next() % 5; i < n; i++)
    g->parts.push_back(make(depth - 1));
  return g;
}

} // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::stoi(argv[1]) : 40;
  std::vector<std::unique_ptr<Shape>> scene;
  for (int i = 0; i < 600; i++)
    scene.push_back(make(4));
  std::vector<std::function<double(const Shape &)>> keys = {
      [](const Shape &s) { return s.area(); },
      [](const Shape &s) { return s.x - s.y; },
      [](const Shape &s) { return s.y; },
  };
  double sum = 0;
  Describe d;
  for (int i = 0; i < rounds; i++) {
    for (auto &s : scene)
      s->step(0.1);
    auto &key = keys[i % keys.size()];
    std::sort(scene.begin(), scene.end(), [&](auto &a, auto &b) { return key(*a) < key(*b); });
    sum += key(*scene[scene.size() / 2]);
    if (i % 8 == 0)
      for (auto &s : scene)
        s->accept(d);
  }
  std::printf("%.3f %zu\n", sum, d.seen.size());
}
