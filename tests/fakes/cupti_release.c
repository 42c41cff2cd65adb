/* SPDX-License-Identifier: Apache-2.0 */
/* The only thing that differs between the builds of the look-alike CUPTI. */
#include "cupti_fake.h"

const uint32_t cupti_release = FAKE_CUPTI_RELEASE;
