/* SPDX-License-Identifier: Apache-2.0 */
/* By this name CMake finds a toolkit. */
#include "cuda_runtime_api.h"
