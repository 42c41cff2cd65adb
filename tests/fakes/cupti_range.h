/* SPDX-License-Identifier: Apache-2.0 */
/* What the look-alike range profiler is told of the GPU's work. */
#ifndef FAKES_CUPTI_RANGE_H
#define FAKES_CUPTI_RANGE_H

#include "fake_gpu.h"

void range_work(const struct fake_work *work);

#endif
