// SPDX-License-Identifier: Apache-2.0
// Two kernels as small as they can be and still have what kernels have: a branch, memory, LDS, a barrier, a loop, an
// inlined function. Without a device library, therefore the compiler's own words.
static float scaled(float value, float factor)
{
    return value * factor;
}

static int global_id(void)
{
    return __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
}

__kernel void vector_add(__global const float *a, __global const float *b, __global float *c, int n)
{
    int i = global_id();
    if (i < n)
        c[i] = a[i] + scaled(b[i], 2.0f);
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void block_sum(__global const float *in, __global float *out)
{
    __local float partial[256];
    int t = __builtin_amdgcn_workitem_id_x();
    partial[t] = in[global_id()];
    for (int step = 128; step > 0; step >>= 1) {
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier();
        if (t < step)
            partial[t] += partial[t + step];
    }
    if (t == 0)
        out[__builtin_amdgcn_workgroup_id_x()] = partial[0];
}
