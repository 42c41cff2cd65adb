/* SPDX-License-Identifier: Apache-2.0 */
/* What the NVTX v3 headers do inside a program, as far as ranges go: find the
 * tool in NVTX_INJECTION64_PATH, let it fill the function tables, call it. */
#ifndef FAKES_NVTX_CLIENT_H
#define FAKES_NVTX_CLIENT_H

/* Safe from any thread; without a tool they do nothing. */
void nvtx_push(const char *name);
void nvtx_pop(void);
/* The same through a domain and an event-attributes struct, as the C++ and Python bindings do. */
void nvtx_domain_push(const char *name);
void nvtx_domain_pop(void);

#endif
