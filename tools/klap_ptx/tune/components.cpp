#include "klap_ptx/tune/components.h"

#include <dlib/matrix.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace klap::tool {
namespace {

using Matrix = dlib::matrix<double>;

Matrix correlations(const SampleTable& table) {
  const auto size = static_cast<long>(table.names.size());
  const auto count = static_cast<double>(table.rows.size());
  Matrix out = dlib::zeros_matrix<double>(size, size);
  for (const std::vector<double>& row : table.rows)
    for (long i = 0; i < size; ++i)
      for (long j = 0; j < size; ++j)
        out(i, j) += row[static_cast<size_t>(i)] * row[static_cast<size_t>(j)] / count;
  return out;
}

// Turns the columns p and q of `vectors`, and the same rows and columns of `matrix`, so that matrix(p, q)
// becomes 0.
void rotate(Matrix& matrix, Matrix& vectors, long p, long q) {
  const double theta = (matrix(q, q) - matrix(p, p)) / (2 * matrix(p, q));
  const double tangent = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::hypot(theta, 1));
  const double cosine = 1 / std::hypot(tangent, 1), sine = tangent * cosine;
  const auto turn = [&](double& a, double& b) {
    const double before = a;
    a = cosine * before - sine * b;
    b = sine * before + cosine * b;
  };
  for (long i = 0; i < matrix.nr(); ++i) turn(matrix(i, p), matrix(i, q));
  for (long i = 0; i < matrix.nr(); ++i) turn(matrix(p, i), matrix(q, i));
  for (long i = 0; i < matrix.nr(); ++i) turn(vectors(i, p), vectors(i, q));
}

// Makes a symmetric matrix diagonal, by Jacobi's method: its eigenvalues. Returns the eigenvectors as
// columns. Debian's dlib leaves that to LAPACK, a shared library that this program would then need for a
// small matrix.
Matrix diagonalise(Matrix& matrix) {
  constexpr int kSweeps = 50;  // each squares the error, so ten are usually enough
  constexpr double kZero = 1e-15;
  Matrix vectors = dlib::identity_matrix<double>(matrix.nr());
  bool is_diagonal = false;
  for (int sweep = 0; sweep < kSweeps && !is_diagonal; ++sweep) {
    is_diagonal = true;
    for (long p = 0; p < matrix.nr(); ++p) {
      for (long q = p + 1; q < matrix.nr(); ++q) {
        if (std::abs(matrix(p, q)) <= kZero) continue;
        rotate(matrix, vectors, p, q);
        is_diagonal = false;
      }
    }
  }
  return vectors;
}

// An eigenvector may point either way. Its largest weight decides, and the first one of several.
void choose_sign(std::vector<double>& weights) {
  constexpr double kRounding = 1e-9;
  double largest = 0;
  for (const double weight : weights)
    if (std::abs(weight) > std::abs(largest) + kRounding) largest = weight;
  if (largest >= 0) return;
  for (double& weight : weights) weight = -weight;
}

}  // namespace

Components principal_components(const SampleTable& table) {
  constexpr double kNoShare = 1e-9;
  const SampleTable scaled = standardised(table);
  Components out;
  out.names = scaled.names;
  if (out.names.empty()) return out;
  Matrix matrix = correlations(scaled);
  const Matrix vectors = diagonalise(matrix);
  for (long column = 0; column < matrix.nr(); ++column) {
    Component component;
    component.share = matrix(column, column) / static_cast<double>(matrix.nr());
    if (component.share < kNoShare) continue;
    for (long i = 0; i < matrix.nr(); ++i) component.weights.push_back(vectors(i, column));
    choose_sign(component.weights);
    for (const std::vector<double>& row : scaled.rows)
      component.scores.push_back(std::inner_product(row.begin(), row.end(), component.weights.begin(), 0.0));
    out.components.push_back(std::move(component));
  }
  std::ranges::stable_sort(out.components, std::greater(), &Component::share);
  return out;
}

std::vector<std::string> heaviest(const Components& all, const Component& component) {
  constexpr size_t kMost = 3;
  std::vector<size_t> order(all.names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto weight = [&](size_t i) { return std::abs(component.weights[i]); };
  std::ranges::stable_sort(order, std::greater(), weight);
  std::vector<std::string> out;
  for (const size_t i : order) {
    if (out.size() == kMost || weight(i) < weight(order.front()) / 2) break;
    out.push_back(fmt::format("{} ({:+.2f})", all.names[i], component.weights[i]));
  }
  return out;
}

}  // namespace klap::tool
