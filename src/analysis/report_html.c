/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/report_html.h"

#include "analysis/report_page.h"
#include "base/base64.h"
#include "base/sha256.h"

enum { COLUMNS_UNBOUNDED = 1 << 20 }; /* the browser wraps */

/* 'sha256-...' of a script or style: the browser runs no other. */
static void source_hash(struct bytes *out, const unsigned char *text, size_t size)
{
    struct sha256 hash;
    uint8_t digest[SHA256_SIZE];
    sha256_begin(&hash);
    sha256_add(&hash, text, size);
    sha256_end(&hash, digest);
    bytes_append_text(out, "'sha256-");
    base64_encode(out, digest, sizeof digest);
    bytes_append_text(out, "'");
}

static void name_text(struct bytes *out, const struct analysis *analysis)
{
    const char *app = *analysis->model->job.app ? analysis->model->job.app : "unknown program";
    struct bytes safe = {0};
    text_escape(&safe, app, strlen(app));
    html_text(out, bytes_text(&safe), safe.size);
    out->failed = out->failed || safe.failed;
    bytes_free(&safe);
}

static void head_write(const struct analysis *analysis, struct bytes *out)
{
    bytes_append_text(out,
                      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
                      "form-action 'none'; style-src ");
    source_hash(out, report_style, report_style_size);
    bytes_append_text(out, "; script-src ");
    source_hash(out, report_script, report_script_size);
    bytes_append_text(out, "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                           "<meta name=\"color-scheme\" content=\"dark light\">\n<title>");
    name_text(out, analysis);
    bytes_append_text(out, " · gpufl report</title>\n<style>");
    bytes_append(out, report_style, report_style_size);
    bytes_append_text(out, "</style></head>\n<body>\n<main>\n<header><h1>");
    name_text(out, analysis);
    bytes_append_text(out, "</h1><button type=\"button\" id=\"theme\" hidden>Light or dark</button></header>\n");
}

static void sections_write(const struct analysis *analysis, const struct report_options *options, unsigned sections,
                           struct bytes *out)
{
    struct bytes marked = {0};
    struct page page = page_make(analysis, options, &marked);
    page.form = PAGE_MARKED;
    page.columns = COLUMNS_UNBOUNDED;
    page.is_wide = true;
    page.use_color = false;
    page_sections(&page, sections);
    html_sections(out, bytes_text(&marked), marked.size);
    out->failed = out->failed || marked.failed;
    bytes_free(&marked);
}

gpufl_status report_html(const struct session_model *model, const struct report_options *options, struct bytes *out)
{
    const unsigned first = REPORT_HEADER | REPORT_TIME;
    struct analysis analysis;
    gpufl_status status = analysis_make_with(&analysis, model, options->may_run_tools ? CODE_TOOLS : CODE_STORED);
    if (status != GPUFL_OK)
        return status;
    head_write(&analysis, out);
    sections_write(&analysis, options, first, out);
    status = html_timeline(&analysis, out);
    sections_write(&analysis, options, ~first, out);
    bytes_append_text(out, "</main>\n<footer>gpufl " GPUFL_VERSION_STRING "</footer>\n<script>");
    bytes_append(out, report_script, report_script_size);
    bytes_append_text(out, "</script>\n</body></html>\n");
    analysis_free(&analysis);
    return out->failed ? GPUFL_E_NO_MEMORY : status;
}
