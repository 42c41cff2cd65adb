/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/report_json.h"

static void stalls_write(struct bytes *out, const struct stalls *stalls, const struct code_place *place)
{
    json_key(out, "stalls");
    bytes_append_char(out, '{');
    for (uint32_t i = 0; place && i < place->row_count; i++) {
        const struct code_sample *row = &stalls->rows[place->row_first + i];
        uint8_t kind = stalls_metric_kind(stalls, row->metric_id);
        if (!(kind & STALL_NOT_ISSUED))
            member_uint(out, stalls->kinds[kind & STALL_KIND_MASK].name, row->value);
    }
    bytes_append_char(out, '}');
}

void json_step(const struct analysis *analysis, const struct code_step *step, struct bytes *out)
{
    const struct code_place *place = step->place;
    const struct instruction_counts none = instruction_counts_none();
    element(out, '{');
    member_uint(out, "pc", step->pc);
    member_text(out, "sass", step->text->sass);
    member_bool(out, "is_raw", step->text->is_raw);
    member_text(out, "word", step->text->words);
    member_bool(out, "is_beyond_end", step->is_beyond);
    member_text(out, "file", step->text->line ? step->text->file : NULL);
    member_int(out, "line", step->text->line ? (int64_t)step->text->line : CELL_UNKNOWN);
    member_text(
        out, "source",
        code_source_line(analysis->model, step->text->file, place ? place->source_file_id : 0, step->text->line));
    list_open(out, "inlined_at");
    for (size_t i = 1; i < step->text->frame_count; i++) {
        element(out, '{');
        member_text(out, "file", step->text->frames[i].path);
        member_uint(out, "line", step->text->frames[i].line);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    member_uint(out, "samples", place ? place->samples : 0);
    member_uint(out, "not_issued", place ? place->not_issued : 0);
    stalls_write(out, &analysis->stalls, place);
    json_counts(place ? &place->counts : &none, place && place->has_counts, out);
    bytes_append_char(out, '}');
}
