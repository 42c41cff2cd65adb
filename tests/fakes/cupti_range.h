/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU work that is reported to the look-alike range profiler. */
#ifndef FAKES_CUPTI_RANGE_H
#define FAKES_CUPTI_RANGE_H

#include "fake_gpu.h"

void range_work(const struct fake_work *work);

#endif
