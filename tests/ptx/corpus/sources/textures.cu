// Textures and surfaces through objects, of every dimension, and texture queries.
__global__ void sample(cudaTextureObject_t t1, cudaTextureObject_t t2, cudaTextureObject_t t3,
                       cudaSurfaceObject_t s, float4* out) {
  int i = threadIdx.x;
  float4 a = tex1Dfetch<float4>(t1, i);
  float b = tex2D<float>(t2, i * .5f, .25f);
  float c = tex3D<float>(t3, i, .5f, 2.f);
  float4 d = tex2DLayered<float4>(t2, i, 1.f, 3);
  float4 e = texCubemap<float4>(t3, .1f, .2f, .3f);
  float f = tex2DLod<float>(t2, i, 2.f, 3.5f);
  uchar4 u;
  surf2Dread(&u, s, i * 4, 3);
  surf2Dwrite(make_uchar4(u.w, u.x, u.y, u.z), s, i * 4, 4, cudaBoundaryModeTrap);
  surf3Dwrite(a.x, s, i * 4, 1, 2);
  float4 g = tex2Dgather<float4>(t2, i, 3.f, 1);
  int width;
  asm("txq.width.b32 %0, [%1];" : "=r"(width) : "l"(t2));
  out[i] = make_float4(a.x + b, c + d.y, e.z + f, u.x + g.w + width);
}
