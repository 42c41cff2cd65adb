/* SPDX-License-Identifier: Apache-2.0 */
/* What `gpufl trace` orders a program that it started: to close its session before a signal ends it, which no handler of
 * the program's would see. */
#ifndef GPUFL_SDK_ORDERS_H
#define GPUFL_SDK_ORDERS_H

/* A session began, which `close` ends. */
void orders_attend(void (*close)(void));
/* On a thread of ours, a few times a second: carries out an order, on another thread. */
void orders_poll(void);

#endif
