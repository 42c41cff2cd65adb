/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the HTML report. Stateless; thread-safe. */
#ifndef GPUFL_ANALYSIS_REPORT_HTML_H
#define GPUFL_ANALYSIS_REPORT_HTML_H

#include "analysis/analysis.h"

/* Files of web/report, which the build embeds (cmake/report_assets.cmake). */
extern const unsigned char report_style[], report_script[];
extern const size_t report_style_size, report_script_size;

/* Escapes text for use between tags and in attributes. */
void html_text(struct bytes *out, const char *text, size_t size);
/* Marked sections (report_page.h) as HTML; the last one is closed. */
void html_sections(struct bytes *out, const char *marked, size_t size);

/* report_timeline.c: the section of the timeline with its data, at most about a megabyte: tracks with more events than
 * fit are aggregated, and the page says so. */
NODISCARD gpufl_status html_timeline(const struct analysis *analysis, struct bytes *out);

#endif
