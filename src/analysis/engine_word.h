/* SPDX-License-Identifier: Apache-2.0 */
/* The names of engines: v1 of the format writes nvidia.pc_sampling; the user interface and our own records use
 * PcSampling. */
#ifndef GPUFL_ANALYSIS_ENGINE_WORD_H
#define GPUFL_ANALYSIS_ENGINE_WORD_H

/* A constant; NULL: an unknown engine. */
const char *engine_word(const char *text);

#endif
