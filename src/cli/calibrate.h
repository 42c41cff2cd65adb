/* SPDX-License-Identifier: Apache-2.0 */
/* `gpufl doctor --calibrate`: measures what CUPTI's record of a kernel costs on this host, and keeps it for the slowdown
 * that reports estimate. */
#ifndef GPUFL_CLI_CALIBRATE_H
#define GPUFL_CLI_CALIBRATE_H

int calibrate(void); /* the exit code */

#endif
