/* SPDX-License-Identifier: Apache-2.0 */
/* What a test needs of the machine. Where it is missing the test is skipped on a
 * developer's machine and fails in CI, so that absence cannot hide. Include
 * after cmocka.h. */
#ifndef GPUFL_TESTS_REQUIREMENT_H
#define GPUFL_TESTS_REQUIREMENT_H

#include <stdlib.h>

#define REQUIRE(condition, what)                                       \
    do {                                                               \
        if (!(condition)) {                                            \
            if (getenv("CI"))                                          \
                fail_msg("%s is missing, and CI must not skip", what); \
            skip();                                                    \
        }                                                              \
    } while (0)

#endif
