// SPDX-License-Identifier: Apache-2.0
// Calls inlined three deep and scattered by the scheduler, so that their ranges are lists.
static int clamped(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

static float tap(__global const float *from, int i, int n)
{
    return from[clamped(i, 0, n - 1)];
}

static float blurred(__global const float *from, int i, int n)
{
    float sum = 0;
    for (int k = -2; k <= 2; k++)
        sum += tap(from, i + k, n) * (k + 3);
    return sum;
}

__kernel void blur(__global const float *from, __global float *to, int n)
{
    int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
    if (i < n)
        to[i] = blurred(from, i, n) + blurred(from, i + n, n);
}
