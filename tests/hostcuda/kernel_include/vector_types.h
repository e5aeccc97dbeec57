// CUDA's vector types, as far as CuPy's complex numbers use them.
#pragma once
struct float2 {
  float x, y;
};
struct double2 {
  double x, y;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline double2 make_double2(double x, double y) { return {x, y}; }
