/* SPDX-License-Identifier: Apache-2.0 */
/* The AMDGPU code objects of tests/recordings/code_objects. Include after cmocka.h. */
#ifndef GPUFL_TESTS_CODE_OBJECT_FIXTURE_H
#define GPUFL_TESTS_CODE_OBJECT_FIXTURE_H

#include "code/image.h"
#include "recording_file.h"

#include <stdlib.h>

static const char *const fixture_objects[] = {
    "kernels.gfx906", "kernels.gfx90a", "kernels.gfx1030", "kernels.gfx1100", "dwarf_4.gfx906", "stripped.gfx90a",
};
enum { fixture_object_count = sizeof fixture_objects / sizeof *fixture_objects };

static inline uint8_t *fixture_object_read(const char *name, const char *ending, size_t *size)
{
    return recording_file_read("code_objects", name, ending, size);
}

/* An open code object whose bytes the fixture owns. */
struct fixture_object {
    uint8_t *bytes;
    size_t size;
    struct code_image image;
};

static inline void fixture_object_open(struct fixture_object *fixture, const char *name)
{
    struct problem problem = {""};
    fixture->bytes = fixture_object_read(name, ".co", &fixture->size);
    if (image_open(&fixture->image, fixture->bytes, fixture->size, &problem))
        fail_msg("%s: %s", name, problem.text);
}

static inline void fixture_object_close(struct fixture_object *fixture)
{
    image_close(&fixture->image);
    free(fixture->bytes);
}

#endif
