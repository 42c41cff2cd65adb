/* SPDX-License-Identifier: Apache-2.0 */
/* What gpufl makes of a cubin's line table, to be compared with nvdisasm by
 * line_check.py: dump_lines CUBIN. One line for each instruction of each function:
 * section, offset in it, then file:line of the innermost frame and of each call
 * that it was inlined into, separated by tabs. */
#include "code/line_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint8_t *file_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    long end = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    uint8_t *bytes = end > 0 ? malloc((size_t)end) : NULL;
    if (bytes)
        rewind(file);
    *size = bytes ? fread(bytes, 1, (size_t)end, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static void function_print(const struct line_table *table, const struct image_function *function)
{
    struct line_frame frames[LINE_FRAMES_MAX];
    for (uint64_t pc = 0; pc < function->size; pc += 16) {
        size_t count = line_table_find(table, function->section, function->offset + pc, frames, LINE_FRAMES_MAX);
        printf("%s\t%" PRIu64, table->image->sections[function->section].name, function->offset + pc);
        for (size_t i = 0; i < count; i++)
            printf("\t%s:%" PRIu32, frames[i].path, frames[i].line);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    size_t size = 0;
    uint8_t *bytes = argc == 2 ? file_read(argv[1], &size) : NULL;
    if (!bytes) {
        fprintf(stderr, argc == 2 ? "dump_lines: cannot read %s\n" : "usage: dump_lines CUBIN\n", argv[argc - 1]);
        return 2;
    }
    struct problem problem = {""};
    struct code_image cubin;
    struct line_table table;
    int result = 1;
    if (image_open(&cubin, bytes, size, &problem) != GPUFL_OK)
        goto free_bytes;
    if (line_table_open(&table, &cubin, LINE_TABLE_SOURCE, &problem) != GPUFL_OK)
        goto close_cubin;
    for (uint32_t i = 0; i < cubin.function_count; i++)
        function_print(&table, &cubin.functions[i]);
    result = 0;
    line_table_close(&table);
close_cubin:
    image_close(&cubin);
free_bytes:
    free(bytes);
    if (result)
        fprintf(stderr, "dump_lines: %s: %s\n", argv[1], problem.text);
    return result;
}
