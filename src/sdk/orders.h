/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of `gpufl trace` to a program that it started: to close its session before a signal ends it, when no
 * handler in the program would run. */
#ifndef GPUFL_SDK_ORDERS_H
#define GPUFL_SDK_ORDERS_H

/* A session began; `close` ends it. */
void orders_attend(void (*close)(void));
/* On our thread, a few times a second: carries out an order, on another thread. */
void orders_poll(void);

#endif
