/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd, whose callbacks returned int before 0.9.71. */
#ifndef GPUFL_HTTP_HTTP_LIBRARY_H
#define GPUFL_HTTP_HTTP_LIBRARY_H

#include <microhttpd.h>

#if MHD_VERSION >= 0x00097002
typedef enum MHD_Result http_library_result;
#else
typedef int http_library_result;
#endif

#endif
