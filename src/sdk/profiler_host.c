/* SPDX-License-Identifier: Apache-2.0 */
/* gpufl/profiler_host.h on top of driver/profiler_host.h: checks arguments and passes the reason of a failure to
 * gpufl_last_error. */
#include "driver/profiler_host.h"

#include "driver/profiler_target.h"
#include "sdk/options.h"
#include "sdk/public_struct.h"
#include "sdk/session.h"

#include <gpufl/profiler_host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpufl_profiler_host {
    struct profiler_host *host;
};

static gpufl_status finish(gpufl_status status, const struct problem *problem)
{
    return status == GPUFL_OK ? GPUFL_OK : session_fail(status, problem);
}

static gpufl_status refuse(const char *text)
{
    struct problem problem = {""};
    return finish(problem_set(&problem, GPUFL_E_INVALID, "profiler host: %s", text), &problem);
}

static gpufl_status load(struct cupti **cupti, struct problem *problem)
{
    if (options_are_disabled(NULL))
        return problem_set(problem, GPUFL_E_DISABLED, "gpufl is disabled (GPUFL_DISABLED)");
    return cupti_load(cupti, problem);
}

static bool type_is_known(gpufl_metric_type type)
{
    return type == GPUFL_METRIC_COUNTER || type == GPUFL_METRIC_RATIO || type == GPUFL_METRIC_THROUGHPUT;
}

static bool metrics_are_named(const char *const *metrics, size_t metric_count)
{
    for (size_t i = 0; metrics && i < metric_count; i++)
        if (!metrics[i])
            return false;
    return metrics && metric_count;
}

/* The structure of a caller whose header may be older or newer than ours: what it has room for, zeros beyond ours. */
static void give(void *out, const void *value, size_t size)
{
    uint32_t struct_size;
    memcpy(&struct_size, out, sizeof struct_size);
    memset(out, 0, struct_size);
    memcpy(out, value, struct_size < size ? struct_size : size);
    memcpy(out, &struct_size, sizeof struct_size);
}

static bool has_room(uint32_t struct_size, size_t size_1_0)
{
    return struct_size >= size_1_0 && struct_size <= STRUCT_SIZE_MAX;
}
static bool names_have_room(const gpufl_name_list *names)
{
    return names && has_room(names->struct_size, SIZE_THROUGH(gpufl_name_list, count));
}
static bool properties_have_room(const gpufl_metric_properties *properties)
{
    return properties && has_room(properties->struct_size, SIZE_THROUGH(gpufl_metric_properties, unit));
}
static bool image_has_room(const gpufl_config_image *image)
{
    return image && has_room(image->struct_size, SIZE_THROUGH(gpufl_config_image, passes));
}

void gpufl_name_list_free(gpufl_name_list *list)
{
    if (!names_have_room(list))
        return;
    name_list_free(&(struct name_list){list->names, list->count});
    give(list, &(gpufl_name_list)GPUFL_NAME_LIST_INIT, sizeof *list);
}

void gpufl_metric_properties_free(gpufl_metric_properties *properties)
{
    if (!properties_have_room(properties))
        return;
    metric_properties_free(&(struct metric_properties){properties->description, properties->hardware_unit,
                                                       properties->unit, METRIC_COUNTER});
    give(properties, &(gpufl_metric_properties)GPUFL_METRIC_PROPERTIES_INIT, sizeof *properties);
}

void gpufl_config_image_free(gpufl_config_image *image)
{
    if (!image_has_room(image))
        return;
    metric_plan_free(&(struct metric_plan){.image = image->bytes});
    give(image, &(gpufl_config_image)GPUFL_CONFIG_IMAGE_INIT, sizeof *image);
}

static gpufl_status give_names(gpufl_status status, const struct name_list *names, gpufl_name_list *out,
                               const struct problem *problem)
{
    if (status == GPUFL_OK)
        give(out, &(gpufl_name_list){.names = names->names, .count = names->count}, sizeof *out);
    return finish(status, problem);
}

gpufl_status gpufl_profiler_host_chips(gpufl_name_list *chips)
{
    if (!names_have_room(chips))
        return refuse("chips is NULL or does not start from GPUFL_NAME_LIST_INIT");
    struct problem problem = {""};
    struct cupti *cupti = NULL;
    struct name_list names = {0};
    gpufl_status status = load(&cupti, &problem);
    if (status == GPUFL_OK)
        status = profiler_host_chips(cupti, &names, &problem);
    return give_names(status, &names, chips, &problem);
}

gpufl_status gpufl_profiler_host_device_chip(uint32_t device, char *chip, size_t chip_size)
{
    if (!chip)
        return refuse("chip is NULL");
    struct problem problem = {""};
    struct cupti *cupti = NULL;
    char name[PROFILER_CHIP_NAME_BYTES] = "";
    gpufl_status status = load(&cupti, &problem);
    if (status == GPUFL_OK)
        status = profiler_target_chip(cupti, device, name, &problem);
    if (status == GPUFL_OK && (size_t)snprintf(chip, chip_size, "%s", name) >= chip_size)
        status =
            problem_set(&problem, GPUFL_E_INVALID, "profiler host: %zu bytes are too few for '%s'", chip_size, name);
    return finish(status, &problem);
}

gpufl_status gpufl_profiler_host_open(gpufl_profiler_host **host, const char *chip, gpufl_profiler_kind kind,
                                      const uint8_t *availability, size_t availability_size)
{
    if (!host || !chip || (!availability && availability_size))
        return refuse("host, chip or availability is NULL");
    if (kind != GPUFL_PROFILER_RANGE && kind != GPUFL_PROFILER_PM_SAMPLING)
        return refuse("unknown kind of profiler");
    struct problem problem = {""};
    struct cupti *cupti = NULL;
    gpufl_profiler_host *opened = calloc(1, sizeof *opened);
    gpufl_status status = opened ? load(&cupti, &problem) : problem_set(&problem, GPUFL_E_NO_MEMORY, "out of memory");
    if (status == GPUFL_OK)
        status = profiler_host_open(&opened->host, cupti, chip, (enum profiler_kind)kind, availability,
                                    availability_size, &problem);
    if (status == GPUFL_OK)
        *host = opened;
    else
        free(opened);
    return finish(status, &problem);
}

void gpufl_profiler_host_close(gpufl_profiler_host *host)
{
    if (!host)
        return;
    profiler_host_close(host->host);
    free(host);
}

gpufl_status gpufl_profiler_host_base_metrics(gpufl_profiler_host *host, gpufl_metric_type type,
                                              gpufl_name_list *metrics)
{
    if (!host || !names_have_room(metrics) || !type_is_known(type))
        return refuse("host or metrics is NULL, metrics does not start from GPUFL_NAME_LIST_INIT, or the "
                      "type of metric is unknown");
    struct problem problem = {""};
    struct name_list names = {0};
    gpufl_status status = profiler_host_base_metrics(host->host, (enum metric_type)type, &names, &problem);
    return give_names(status, &names, metrics, &problem);
}

gpufl_status gpufl_profiler_host_sub_metrics(gpufl_profiler_host *host, const char *metric, gpufl_metric_type type,
                                             gpufl_name_list *suffixes)
{
    if (!host || !metric || !names_have_room(suffixes) || !type_is_known(type))
        return refuse("host, metric or suffixes is NULL, suffixes does not start from GPUFL_NAME_LIST_INIT, or the "
                      "type of metric is unknown");
    struct problem problem = {""};
    struct name_list names = {0};
    gpufl_status status = profiler_host_sub_metrics(host->host, metric, (enum metric_type)type, &names, &problem);
    return give_names(status, &names, suffixes, &problem);
}

gpufl_status gpufl_profiler_host_metric_properties(gpufl_profiler_host *host, const char *metric,
                                                   gpufl_metric_properties *properties)
{
    if (!host || !metric || !properties_have_room(properties))
        return refuse("host, metric or properties is NULL, or properties does not start from "
                      "GPUFL_METRIC_PROPERTIES_INIT");
    struct problem problem = {""};
    struct metric_properties found = {0};
    gpufl_status status = profiler_host_properties(host->host, metric, &found, &problem);
    if (status == GPUFL_OK)
        give(properties,
             &(gpufl_metric_properties){.type = (gpufl_metric_type)found.type,
                                        .description = found.description,
                                        .hardware_unit = found.hardware_unit,
                                        .unit = found.unit},
             sizeof *properties);
    return finish(status, &problem);
}

gpufl_status gpufl_profiler_host_config_image(gpufl_profiler_host *host, const char *const *metrics,
                                              size_t metric_count, gpufl_config_image *image)
{
    if (!host || !image_has_room(image) || !metrics_are_named(metrics, metric_count))
        return refuse("host, image or a metric is NULL, there are no metrics, or image does not start from "
                      "GPUFL_CONFIG_IMAGE_INIT");
    struct problem problem = {""};
    struct metric_plan plan = {0};
    gpufl_status status = profiler_host_plan(host->host, metrics, metric_count, &plan, &problem);
    if (status == GPUFL_OK)
        give(image, &(gpufl_config_image){.bytes = plan.image, .size = plan.image_bytes, .passes = plan.passes},
             sizeof *image);
    return finish(status, &problem);
}

gpufl_status gpufl_profiler_host_passes(gpufl_profiler_host *host, const uint8_t *image, size_t image_size,
                                        size_t *passes)
{
    if (!host || !image || !image_size || !passes)
        return refuse("host, image or passes is NULL, or the image is empty");
    struct problem problem = {""};
    return finish(profiler_host_passes(host->host, image, image_size, passes, &problem), &problem);
}

gpufl_status gpufl_profiler_host_metrics_per_pass(gpufl_profiler_host *host, size_t *count)
{
    if (!host || !count)
        return refuse("host or count is NULL");
    struct problem problem = {""};
    return finish(profiler_host_metrics_per_pass(host->host, count, &problem), &problem);
}

gpufl_status gpufl_profiler_host_evaluate(gpufl_profiler_host *host, const uint8_t *counter_data,
                                          size_t counter_data_size, size_t range_index, const char *const *metrics,
                                          size_t metric_count, double *values)
{
    if (!host || !counter_data || !counter_data_size || !values || !metrics_are_named(metrics, metric_count))
        return refuse("host, counter data, values or a metric is NULL, or there are no metrics");
    struct problem problem = {""};
    return finish(profiler_host_evaluate(host->host, counter_data, counter_data_size, range_index, metrics,
                                         metric_count, values, &problem),
                  &problem);
}

gpufl_status gpufl_profiler_host_single_pass_sets(const char *chip, gpufl_name_list *sets)
{
    if (!chip || !names_have_room(sets))
        return refuse("chip or sets is NULL, or sets does not start from GPUFL_NAME_LIST_INIT");
    struct problem problem = {""};
    struct cupti *cupti = NULL;
    struct name_list names = {0};
    gpufl_status status = load(&cupti, &problem);
    if (status == GPUFL_OK)
        status = profiler_host_single_pass_sets(cupti, chip, &names, &problem);
    return give_names(status, &names, sets, &problem);
}

gpufl_status gpufl_profiler_host_single_pass_metrics(const char *chip, const char *set, gpufl_name_list *metrics)
{
    if (!chip || !set || !names_have_room(metrics))
        return refuse("chip, set or metrics is NULL, or metrics does not start from GPUFL_NAME_LIST_INIT");
    struct problem problem = {""};
    struct cupti *cupti = NULL;
    struct name_list names = {0};
    gpufl_status status = load(&cupti, &problem);
    if (status == GPUFL_OK)
        status = profiler_host_single_pass_metrics(cupti, chip, set, &names, &problem);
    return give_names(status, &names, metrics, &problem);
}
