// Two units with static kernels and variables of equal names, one template child instantiated in both, and a
// variable that one of them defines for both. One child calls a function of the other unit. Names that a
// rewriter adds must not meet, and what is static must stay with its unit.
#include "program.h"
#include "two_units.h"

int main() {
  gpu::Report report("two_units");
  const gpu::Buffer<double> scaled(static_cast<size_t>(kParents) * kCells);
  const gpu::Buffer<int> filled_a(static_cast<size_t>(kParents) * kCells);
  const gpu::Buffer<int> filled_b(static_cast<size_t>(kParents) * kCells);
  const gpu::Buffer<int> tripled(kParents);
  int count_a = 0;
  int count_b = 0;
  run_unit_a(scaled.data(), filled_a.data(), &count_a);
  run_unit_b(scaled.data(), filled_b.data(), &count_b);
  run_unit_a(scaled.data(), filled_a.data(), &count_a);
  run_calls(tripled.data());

  std::vector<double> expected_scaled;
  std::vector<int> expected_a;
  std::vector<int> expected_b;
  std::vector<int> expected_tripled;
  for (int t = 0; t < kParents; ++t) {
    const double a = t + 1;
    const double b = 2 * t + 1;
    expected_scaled.insert(expected_scaled.end(), kCells, (a * b + b) * a + a);
    expected_a.insert(expected_a.end(), kCells, 1000 + t + 3);
    expected_tripled.push_back(3 * t);
    expected_b.insert(expected_b.end(), kCells, -t - 3);
  }
  const int once = kParents * (kParents - 1) / 2;
  report.expect_equal("cells scaled by both units", scaled.to_host(), expected_scaled);
  report.expect_equal("cells filled by unit a", filled_a.to_host(), expected_a);
  report.expect_equal("cells filled by unit b", filled_b.to_host(), expected_b);
  report.expect_equal("children that call into the other unit", tripled.to_host(), expected_tripled);
  report.expect(count_a == 2 * once && count_b == once, "the units counted %d and %d instead of %d and %d",
                count_a, count_b, 2 * once, once);
  return report.finish();
}
