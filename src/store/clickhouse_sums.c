/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a group of writes: segments, sums per kernel, sums per GPU and minute, and facts about GPUs. None of it
 * counts before the commit rows, except facts about GPUs: each of those rows holds a newest or oldest value, so
 * repeating it changes nothing. */
#include "store/clickhouse_store.h"

#include <stdio.h>

static void segment_put(const struct ch_write *write, const struct segment *segment, uint32_t number, uint64_t bytes,
                        struct bytes *out)
{
    char names[LAYOUT_NAMES_MAX];
    layout_names(segment->type, segment->present, names);
    ch_put_text(out, write->unit.session_id);
    ch_put_u64(out, write->write_id);
    ch_put_i64(out, write->received_ns);
    ch_put_u32(out, number);
    ch_put_text(out, layout_type_name(segment->type));
    ch_put_text(out, channel_text(segment->channel));
    ch_put_text(out, names);
    ch_put_u32(out, segment->rows);
    ch_put_i64(out, segment->min_ns);
    ch_put_i64(out, segment->max_ns);
    ch_put_u64(out, bytes);
    ch_put_blob(out, segment->bytes.data, segment->bytes.size);
    varint_append(out, segment->level_count);
    for (unsigned i = 0; i < segment->level_count; i++)
        ch_put_u8(out, (uint8_t)segment->levels[i].shift);
    varint_append(out, segment->level_count);
    for (unsigned i = 0; i < segment->level_count; i++)
        ch_put_blob(out, segment->levels[i].bytes.data, segment->levels[i].bytes.size);
}

static void segments_put(struct ch_write *write, struct bytes *out)
{
    write->bytes = write->segment_rows = 0;
    for (size_t i = 0; i < write->unit.segment_count; i++) {
        const struct segment *segment = &write->unit.segments[i];
        uint64_t bytes = segment->bytes.size;
        for (unsigned l = 0; l < segment->level_count; l++)
            bytes += segment->levels[l].bytes.size;
        write->segment_rows += segment->rows;
        sum_add_ns(&write->bytes, (int64_t)bytes);
        segment_put(write, segment, (uint32_t)i, bytes, out);
    }
}

/* ---- kernels ---- */

static void kernel_head_put(struct ch_write *write, uint32_t kernel_id, bool is_name, const char *name, size_t size,
                            struct bytes *out)
{
    ch_put_text(out, write->unit.session_id);
    ch_put_u64(out, write->write_id);
    ch_put_i64(out, write->received_ns);
    ch_put_u32(out, write->kernel_rows++);
    ch_put_u32(out, kernel_id);
    ch_put_u8(out, is_name);
    ch_put_blob(out, name, size);
}

static void kernels_put(struct ch_write *write, struct bytes *out)
{
    const struct write_sums *sums = &write->unit.sums;
    write->kernel_rows = 0;
    for (size_t i = 0; i < sums->name_count; i++) {
        const struct kernel_name *name = &sums->names[i];
        const uint64_t nothing[4] = {0};
        double squares = 0;
        kernel_head_put(write, name->kernel_id, true, sums->names_text.data + name->at, name->size, out);
        ch_put(out, nothing, sizeof nothing);
        ch_put(out, &squares, sizeof squares);
        varint_append(out, 0);
    }
    for (size_t i = 0; i < sums->kernel_count; i++) {
        const struct kernel_sum *sum = &sums->kernels[i];
        kernel_head_put(write, sum->kernel_id, false, "", 0, out);
        ch_put_u64(out, sum->count);
        ch_put_i64(out, sum->total_ns);
        ch_put_i64(out, sum->min_ns);
        ch_put_i64(out, sum->max_ns);
        ch_put(out, &sum->sum_squares, sizeof sum->sum_squares);
        varint_append(out, STORE_HISTOGRAM_BINS);
        for (unsigned b = 0; b < STORE_HISTOGRAM_BINS; b++)
            ch_put_u64(out, sum->histogram[b]);
    }
}

/* ---- GPUs and their metrics ---- */

/* A newer row replaces the older one of the same aspect. */
enum aspect { ASPECT_FIRST, ASPECT_LAST, ASPECT_DEVICE, ASPECT_NAME, ASPECT_SAMPLE };

struct place {
    const char *host, *uuid;
};

static void aspect_put(const struct place *place, enum aspect aspect, int64_t at_ns, int64_t device_id,
                       const char *name, struct bytes *out)
{
    ch_put_text(out, place->host);
    ch_put_text(out, place->uuid);
    ch_put_u8(out, (uint8_t)aspect);
    /* The row with the largest version stays: for the first sighting, the oldest. */
    ch_put_u64(out, aspect == ASPECT_FIRST ? (uint64_t)INT64_MAX - (uint64_t)at_ns : (uint64_t)at_ns);
    ch_put_i64(out, device_id);
    ch_put_text(out, name);
    for (unsigned i = 0; i < 4; i++)
        ch_put_text(out, "");
}

static void gpu_put(const struct place *place, int64_t at_ns, int64_t device_id, const char *name, struct bytes *out)
{
    aspect_put(place, ASPECT_FIRST, at_ns, 0, "", out);
    aspect_put(place, ASPECT_LAST, at_ns, 0, "", out);
    aspect_put(place, ASPECT_DEVICE, at_ns, device_id, "", out);
    if (*name)
        aspect_put(place, ASPECT_NAME, at_ns, 0, name, out);
}

void ch_machine_learn(struct ch_machine *machine, const char *host, size_t host_size)
{
    if (host_size)
        snprintf(machine->host, sizeof machine->host, "%.*s", (int)host_size, host);
}

void ch_machine_learn_gpu(struct ch_machine *machine, int64_t device_id, const char *uuid, size_t uuid_size)
{
    unsigned i = 0;
    while (i < machine->gpu_count && machine->gpus[i].device_id != device_id)
        i++;
    if (i == FACT_GPUS_MAX)
        return;
    machine->gpu_count += i == machine->gpu_count;
    machine->gpus[i].device_id = device_id;
    snprintf(machine->gpus[i].uuid, sizeof machine->gpus[i].uuid, "%.*s", (int)uuid_size, uuid);
}

static void facts_learn(struct ch_machine *machine, const struct session_facts *facts)
{
    ch_machine_learn(machine, facts->host, strlen(facts->host));
    for (unsigned i = 0; i < facts->gpu_count; i++)
        ch_machine_learn_gpu(machine, facts->gpus[i].device_id, facts->gpus[i].uuid, strlen(facts->gpus[i].uuid));
}

/* The GPU of a session's device number, or the host itself; uuid is a buffer for a generated one when the log had
 * none. */
static struct place place_of(const struct ch_machine *machine, int64_t device_id, char uuid[48], bool *is_known)
{
    *is_known = false;
    if (device_id == CELL_UNKNOWN)
        return (struct place){machine->host, ""};
    for (unsigned i = 0; i < machine->gpu_count; i++)
        if (machine->gpus[i].device_id == device_id) {
            *is_known = true;
            return (struct place){machine->host, machine->gpus[i].uuid};
        }
    snprintf(uuid, 48, "device-%lld", (long long)device_id);
    return (struct place){machine->host, uuid};
}

static void metric_put(const struct ch_write *write, const struct metric_sum *sum, struct bytes *out)
{
    char uuid[48], names[LAYOUT_NAMES_MAX];
    bool is_known;
    struct bytes cells = {0};
    const struct place place = place_of(&write->machine, sum->device_id, uuid, &is_known);
    layout_names(sum->type, UINT64_MAX, names);
    metric_cells_encode(sum->cells, record_catalogue[sum->type].column_count, &cells);
    ch_put_text(out, place.host);
    ch_put_text(out, place.uuid);
    ch_put_i64(out, sum->minute);
    ch_put_text(out, write->unit.session_id);
    ch_put_u64(out, write->write_id);
    ch_put_i64(out, write->received_ns);
    ch_put_text(out, layout_type_name(sum->type));
    ch_put_text(out, names);
    ch_put_blob(out, cells.data, cells.size);
    out->failed |= cells.failed;
    bytes_free(&cells);
}

static void sample_put(const struct ch_write *write, const struct metric_sample *sample, struct bytes *out)
{
    char uuid[48], names[LAYOUT_NAMES_MAX];
    bool is_known;
    const struct place place = place_of(&write->machine, sample->device_id, uuid, &is_known);
    int64_t at_ns = write->received_ns;
    if (is_known)
        aspect_put(&place, ASPECT_LAST, at_ns, 0, "", out);
    else
        gpu_put(&place, at_ns, sample->device_id, "", out);
    layout_names(sample->type, UINT64_MAX, names);
    ch_put_text(out, place.host);
    ch_put_text(out, place.uuid);
    ch_put_u8(out, ASPECT_SAMPLE);
    ch_put_u64(out, sample->cells[0] > 0 ? (uint64_t)sample->cells[0] : 0);
    ch_put_i64(out, 0);
    ch_put_text(out, "");
    ch_put_text(out, layout_type_name(sample->type));
    ch_put_text(out, names);
    ch_put_blob(out, sample->cells, record_catalogue[sample->type].column_count * sizeof *sample->cells);
    ch_put_text(out, write->unit.session_id);
}

static void machine_put(const struct ch_write *first, struct ch_write *write, struct bytes *gpus, struct bytes *metrics)
{
    const struct write_sums *sums = &write->unit.sums;
    /* The tables do not have the earlier writes of this group yet. */
    for (const struct ch_write *before = first; before != write->next; before = before->next)
        if (!strcmp(before->unit.session_id, write->unit.session_id))
            facts_learn(&write->machine, &before->unit.sums.facts);
    for (unsigned i = 0; i < sums->facts.gpu_count; i++) {
        const struct gpu_fact *fact = &sums->facts.gpus[i];
        const struct place place = {write->machine.host, fact->uuid};
        gpu_put(&place, write->received_ns, fact->device_id, fact->name, gpus);
    }
    for (size_t i = 0; i < sums->metric_count; i++)
        metric_put(write, &sums->metrics[i], metrics);
    for (size_t i = 0; i < sums->sample_count; i++)
        sample_put(write, &sums->samples[i], gpus);
}

void ch_data_make(struct ch_write *first, struct ch_batch batches[DATA_BATCHES])
{
    static const char *const tables[DATA_BATCHES] = {
        ("segment (session_id,write_id,received_ns,number,type,channel,columns,rows,min_ns,max_ns,bytes,data,shifts,"
         "levels)"),
        ("kernel (session_id,write_id,received_ns,number,kernel_id,is_name,name,count,total_ns,min_ns,max_ns,"
         "sum_squares,histogram)"),
        "metric (host,uuid,minute,session_id,write_id,received_ns,type,columns,data)",
        "gpu (host,uuid,aspect,version,device_id,name,type,columns,sample,session_id)",
    };
    for (unsigned i = 0; i < DATA_BATCHES; i++)
        batches[i] = (struct ch_batch){.into = tables[i]};
    for (struct ch_write *write = first; write; write = write->next) {
        segments_put(write, &batches[0].rows);
        kernels_put(write, &batches[1].rows);
        machine_put(first, write, &batches[3].rows, &batches[2].rows);
    }
}
