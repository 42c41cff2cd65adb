/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a URL in the user's browser. Single-threaded. */
#ifndef GPUFL_CLI_BROWSER_H
#define GPUFL_CLI_BROWSER_H

#include <stdbool.h>

/* Starts the first program of $BROWSER (separated by ':', %s is the URL) that is installed, or xdg-open where there is a
 * graphical desktop. No shell is involved; the browser does not get this program's terminal or signals. False: there is
 * none. */
bool browser_open(const char *url);

#endif
