// Templates, lambdas, namespaces and long names.

// by: nvrtc nvcc clang
namespace outer {
namespace {
template <typename T, int N>
struct Array {
  T items[N];
  __device__ T& operator[](int i) { return items[i]; }
};
}  // namespace
template <typename F>
__device__ __noinline__ auto apply(F f, int x) {
  return f(x);
}
template <typename First, typename... Rest>
__device__ int count(First first, Rest... rest) {
  if constexpr (sizeof...(rest) > 0) return (int)first + count(rest...);
  return (int)first;
}
template <typename T>
__global__ void kernel_with_a_name_that_is_rather_long_because_programs_have_such_names(T* data, int n) {
  Array<T, 7> local;
  for (int i = 0; i < 7; ++i) local[i] = data[i * n];
  auto scale = [=](int x) { return local.items[x % 7] * n; };
  data[0] = apply(scale, n) + (T)count(1, 2.5, 'c', n);
  data[1] = apply([&](int x) { return local[x & 3]++; }, n) + local[n % 7];
}
template __global__ void kernel_with_a_name_that_is_rather_long_because_programs_have_such_names(float*, int);
template __global__ void kernel_with_a_name_that_is_rather_long_because_programs_have_such_names(long long*,
                                                                                                 int);
}  // namespace outer
