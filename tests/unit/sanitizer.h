/* SPDX-License-Identifier: Apache-2.0 */
/* IS_SANITIZED: whether this build has a sanitizer that cannot have the real
 * CUPTI in its process, because that opens its libraries with RTLD_DEEPBIND. */
#ifndef GPUFL_TESTS_SANITIZER_H
#define GPUFL_TESTS_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

#endif
