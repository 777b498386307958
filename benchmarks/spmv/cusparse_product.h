// The sparse matrix-vector product of NVIDIA's library, the yardstick of the flat variant.
//
// The library is opened at run time: the program must start on machines that have only a driver, and only the
// library variant needs it.
#pragma once

#include <memory>
#include <string>

// The matrix and vectors, all on the device: y = A x in single precision.
struct CusparseProblem {
  int rows;
  int entries;
  int* first;
  int* columns;
  float* values;
  float* x;
  float* y;
};

class CusparseProduct {
 public:
  // Prepares every algorithm that the library has for rows and keeps the fastest. Ends the program with exit
  // code 4 on machines without the library.
  explicit CusparseProduct(const CusparseProblem& problem);
  ~CusparseProduct();
  CusparseProduct(const CusparseProduct&) = delete;
  CusparseProduct& operator=(const CusparseProduct&) = delete;

  void multiply();
  // The algorithm that was the fastest.
  [[nodiscard]] std::string algorithm() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Ends the program with exit code 4 unless the library can be opened.
void require_cusparse();
