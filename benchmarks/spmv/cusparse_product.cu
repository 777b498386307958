// Opening and calling cuSPARSE; see cusparse_product.h.
#include <cusparse.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../common/cuda_check.h"
#include "cusparse_product.h"

namespace {

constexpr int kTrials = 5;

// The library's functions under their own names.
struct Library {
  decltype(&cusparseCreate) create;
  decltype(&cusparseCreateCsr) create_csr;
  decltype(&cusparseCreateDnVec) create_vector;
  decltype(&cusparseSpMV_bufferSize) buffer_size;
  decltype(&cusparseSpMV_preprocess) preprocess;  // null in older versions
  decltype(&cusparseSpMV) multiply;
};

[[noreturn]] void unavailable(const std::string& why) {
  std::fprintf(stderr, "spmv: no cuSPARSE on this machine: %s\n", why.c_str());
  std::exit(4);
}

std::string last_error() {
  const char* error = dlerror();
  return error == nullptr ? "the cause is not known" : error;
}

void* open_library() {
  const char* folders[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/targets/x86_64-linux/lib/"};
  std::string why;
  for (const char* folder : folders) {
    const std::string file = std::string(folder) + "libcusparse.so.12";
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    if (why.empty()) why = last_error();
  }
  unavailable(why);
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

const Library& library() {
  static const Library functions = [] {
    void* opened = open_library();
    Library l = {};
    find(opened, "cusparseCreate", l.create);
    find(opened, "cusparseCreateCsr", l.create_csr);
    find(opened, "cusparseCreateDnVec", l.create_vector);
    find(opened, "cusparseSpMV_bufferSize", l.buffer_size);
    find(opened, "cusparseSpMV_preprocess", l.preprocess);
    find(opened, "cusparseSpMV", l.multiply);
    if (!l.create || !l.create_csr || !l.create_vector || !l.buffer_size || !l.multiply) {
      unavailable("it lacks the generic functions");
    }
    return l;
  }();
  return functions;
}

void check(cusparseStatus_t status, const char* what) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  std::fprintf(stderr, "spmv: cuSPARSE failed with status %d: %s\n", static_cast<int>(status), what);
  std::exit(3);
}

// One algorithm with everything prepared. What the library hands out lives as long as the program.
class Prepared {
 public:
  Prepared(cusparseHandle_t handle, const CusparseProblem& p, cusparseSpMVAlg_t algorithm, const char* name)
      : handle_(handle), algorithm_(algorithm), name_(name) {
    check(library().create_csr(&matrix_, p.rows, p.rows, p.entries, p.first, p.columns, p.values,
                               CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F),
          "describing the matrix");
    check(library().create_vector(&x_, p.rows, p.x, CUDA_R_32F), "describing x");
    check(library().create_vector(&y_, p.rows, p.y, CUDA_R_32F), "describing y");
    size_t bytes = 0;
    check(
        library().buffer_size(handle_, kAsIs, &kOne, matrix_, x_, &kZero, y_, CUDA_R_32F, algorithm_, &bytes),
        "asking for the buffer's size");
    buffer_ = std::make_unique<bench::DeviceArray<char>>(bytes);
    if (library().preprocess == nullptr) return;
    check(library().preprocess(handle_, kAsIs, &kOne, matrix_, x_, &kZero, y_, CUDA_R_32F, algorithm_,
                               buffer_->data()),
          "preparing");
  }

  void multiply() {
    check(library().multiply(handle_, kAsIs, &kOne, matrix_, x_, &kZero, y_, CUDA_R_32F, algorithm_,
                             buffer_->data()),
          "multiplying");
  }

  // Milliseconds that one product takes: the fastest of a few.
  float measure() {
    cudaEvent_t start = nullptr;
    cudaEvent_t stop = nullptr;
    bench::check(cudaEventCreate(&start), "cudaEventCreate");
    bench::check(cudaEventCreate(&stop), "cudaEventCreate");
    float fastest = 0;
    for (int i = 0; i <= kTrials; ++i) {
      bench::check(cudaEventRecord(start), "cudaEventRecord");
      multiply();
      bench::check(cudaEventRecord(stop), "cudaEventRecord");
      bench::check(cudaEventSynchronize(stop), "waiting for cuSPARSE");
      float ms = 0;
      bench::check(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
      if (i > 0) fastest = i == 1 ? ms : std::min(fastest, ms);  // the first is to warm up
    }
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    return fastest;
  }

  [[nodiscard]] const char* name() const { return name_; }

 private:
  static constexpr cusparseOperation_t kAsIs = CUSPARSE_OPERATION_NON_TRANSPOSE;
  static constexpr float kOne = 1;
  static constexpr float kZero = 0;

  cusparseHandle_t handle_;
  cusparseSpMVAlg_t algorithm_;
  const char* name_;
  cusparseSpMatDescr_t matrix_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr;
  cusparseDnVecDescr_t y_ = nullptr;
  std::unique_ptr<bench::DeviceArray<char>> buffer_;
};

}  // namespace

struct CusparseProduct::State {
  std::unique_ptr<Prepared> fastest;
};

CusparseProduct::CusparseProduct(const CusparseProblem& problem) : state_(std::make_unique<State>()) {
  cusparseHandle_t handle = nullptr;
  check(library().create(&handle), "starting");
  float best = 0;
  const auto consider = [&](cusparseSpMVAlg_t algorithm, const char* name) {
    auto candidate = std::make_unique<Prepared>(handle, problem, algorithm, name);
    const float ms = candidate->measure();
    if (state_->fastest != nullptr && ms >= best) return;
    best = ms;
    state_->fastest = std::move(candidate);
  };
  consider(CUSPARSE_SPMV_ALG_DEFAULT, "default");
  consider(CUSPARSE_SPMV_CSR_ALG1, "CSR 1");
  consider(CUSPARSE_SPMV_CSR_ALG2, "CSR 2");
}

CusparseProduct::~CusparseProduct() = default;

void CusparseProduct::multiply() { state_->fastest->multiply(); }

std::string CusparseProduct::algorithm() const { return state_->fastest->name(); }

void require_cusparse() { library(); }
