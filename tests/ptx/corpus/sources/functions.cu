// Functions that are called: results and parameters by value, recursion, function pointers, virtual functions
// and tables of them.

// by: nvrtc nvcc clang
struct Vector {
  float x, y, z;
};

__device__ __noinline__ Vector cross(Vector a, Vector b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ bool is_odd(unsigned n);
__device__ __noinline__ bool is_even(unsigned n) { return n == 0 || is_odd(n - 1); }
__device__ __noinline__ bool is_odd(unsigned n) { return n != 0 && is_even(n - 1); }

__device__ __noinline__ float twice(float x) { return x * 2 + 1; }
__device__ __noinline__ float half_of(float x) { return x / 2 - 1; }
typedef float (*Function)(float);
__device__ Function table[2] = {twice, half_of};

struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
  double radius;
  __device__ explicit Circle(double r) : radius(r) {}
  __device__ float area() const override { return 3.14159f * (float)(radius * radius); }
};

__device__ __noinline__ void fill(char* to, long long value, short s, unsigned char c, bool b) {
  to[0] = (char)value;
  to[1] = (char)(s + c);
  to[2] = b;
}

__global__ void calls(float* out, int n, Function passed) {
  Vector v = cross({out[0], out[1], out[2]}, {1, 2, (float)n});
  out[3] = v.x + v.y + v.z + ackermann(n & 3, 2) + is_even(n);
  out[4] = table[n & 1](out[5]) + passed(2.f);
  fill((char*)out, n, 3, 200, n > 4);
}

__global__ void objects(float* out, int n) {
  Square square(out[0]);
  Circle circle(out[1]);
  const Shape* shape = n > 3 ? (const Shape*)&square : (const Shape*)&circle;
  out[2] = shape->area();
}
