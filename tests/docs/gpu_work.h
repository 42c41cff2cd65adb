/* SPDX-License-Identifier: Apache-2.0 */
/* What C and C++ blocks leave to the reader: a program that has work for a GPU. Here it is the look-alike one. */
#ifndef GPU_WORK_H
#define GPU_WORK_H

#ifdef __cplusplus
extern "C" {
#endif

enum { steps = 3 };
void launch_kernels(void);
void train(int step);
void matmul(void);

#ifdef __cplusplus
}
#endif
#endif
