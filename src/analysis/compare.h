/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two sessions: kernels by name and scopes by path, each with its numbers in both sessions and a verdict. Made
 * once, then read-only; borrows both analyses, which must outlive it.
 *
 * slower, faster: the median changed by more than the threshold and by more than its noise: three standard errors of
 * both medians (from the quartiles), or, with fewer than COMPARE_COUNT_MIN values on a side, ranges that do not
 * overlap. A single value has no range: something that ran once must differ by COMPARE_ONCE_FACTOR. A regression is a
 * slower kernel or scope that takes at least COMPARE_WEIGHT_MIN of its session's time, or a total kernel time that grew
 * by more than the threshold.
 *
 * There is no verdict, and kernels are not compared, if kernels were timed in one session only. There is also no
 * verdict if only one session ran a kernel, or if neither has a timed kernel and no scope is in both. Unless the caller
 * allows it, there is no verdict either if a session is incomplete, or if the kernels in both sessions take less than
 * COMPARE_COMMON_MIN of the kernel time of either: such sessions are of two programs, not of two versions of one. */
#ifndef GPUFL_ANALYSIS_COMPARE_H
#define GPUFL_ANALYSIS_COMPARE_H

#include "analysis/analysis.h"
#include "analysis/report.h"

enum { COMPARE_COUNT_MIN = 5, COMPARE_ONCE_FACTOR = 2 };
#define COMPARE_WEIGHT_MIN 0.01
#define COMPARE_THRESHOLD 0.05
#define COMPARE_COMMON_MIN 0.25

enum change_verdict { CHANGE_NONE, CHANGE_FASTER, CHANGE_SLOWER, CHANGE_NEW, CHANGE_VANISHED };

struct compared_side {
    struct distribution duration; /* all 0 with count 0 */
    int64_t p25_ns, p75_ns;
    int64_t gpu_ns; /* of scopes: GPU time inside; TIME_UNKNOWN */
};

struct compared_row {
    const char *name; /* kernel or scope path; NULL: its name was not recorded */
    struct compared_side base, fresh;
    int64_t change_ns;      /* of the totals */
    double share_of_change; /* of the sum of the absolute changes of all rows; negative: faster */
    double median_ratio;    /* fresh : base; NaN */
    enum change_verdict verdict;
    bool is_regression;
};

struct compare_options {
    double threshold;
    bool allow_incomplete; /* also judge incomplete sessions */
    bool allow_unrelated;  /* and sessions with hardly a kernel in common */
};

enum compare_verdict { COMPARE_JUDGED, COMPARE_TIMES_MISSING, COMPARE_UNRELATED, COMPARE_INCOMPLETE };

struct comparison {
    const struct analysis *base, *fresh;
    double threshold;
    struct compared_row *kernels, *scopes; /* owned; largest change first */
    size_t kernel_count, scope_count;
    struct intern kernel_names, scope_names;
    uint64_t regressions; /* rows, plus 1 if total kernel time grew */
    bool is_total_regression;
    bool has_kernel_times; /* in both sessions */
    /* The fraction of each session's kernel time in kernels of both sessions; NaN: a session has no timed kernels. */
    double base_common, fresh_common;
    enum compare_verdict verdict; /* otherwise why there is none */
};

NODISCARD gpufl_status compare_make(struct comparison *comparison, const struct analysis *base,
                                    const struct analysis *fresh, const struct compare_options *options);
void compare_free(struct comparison *comparison);
const char *change_verdict_name(enum change_verdict verdict); /* "same", "faster", ... */

/* compare_report.c: appends, escaped, why a session's kernel times are unknown; why may be NULL. False: they are known,
 * also if no kernel ran. */
bool kernel_times_missing(const struct analysis *analysis, struct bytes *why);
/* "new: not recorded (engine Monitor)", for each session without a timed kernel; "" for none. */
void compare_missing(const struct comparison *comparison, struct bytes *out);
/* Why there is no verdict, one line without a full stop; "" if there is one. */
void compare_refusal(const struct comparison *comparison, struct bytes *out);
/* Both append to out. top: number of table rows, 0 all. */
void compare_json(const struct comparison *comparison, struct bytes *out);
void compare_text(const struct comparison *comparison, const struct report_options *options, struct bytes *out);

#endif
