/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the options to the settings of the engines that count and sample. */
#ifndef GPUFL_SDK_DEEP_OPTIONS_H
#define GPUFL_SDK_DEEP_OPTIONS_H

#include "capture/deep.h"
#include "sdk/options.h"

/* The options are borrowed for the life of the session. */
struct deep_settings deep_settings_of(const struct options *options, bool is_injected);

#endif
