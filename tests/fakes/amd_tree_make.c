/* SPDX-License-Identifier: Apache-2.0 */
/* fake_amd_tree ROOT KIND@SLOT[/PARTITIONS]...: makes a tree with these GPUs, card0 first, and a process on each. */
#include "amd_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"mi300x", "rx7900", "apu", "broken"};
    for (int i = 2; i < argc; i++) {
        char *slot = strchr(argv[i], '@');
        int kind = -1;
        for (int j = 0; slot && j < 4; j++)
            if (strlen(kinds[j]) == (size_t)(slot - argv[i]) && !strncmp(kinds[j], argv[i], strlen(kinds[j])))
                kind = j;
        unsigned card = (unsigned)i - 2;
        char *slash = slot ? strchr(slot, '/') : NULL;
        unsigned partitions = slash ? (unsigned)strtoul(slash + 1, NULL, 10) : 1;
        if (slash)
            *slash = '\0';
        if (kind < 0 || !amd_tree_add(argv[1], kind, card, slot + 1) ||
            !amd_tree_kfd_process(argv[1], 4000 + card, amd_tree_gpu_id(card), 3u << 30) ||
            (partitions > 1 && !amd_tree_divide(argv[1], card, slot + 1, partitions, false))) {
            fprintf(stderr, "fake_amd_tree: cannot make %s: %s\n", argv[i],
                    kind < 0 ? "no such kind" : strerror(errno));
            return 1;
        }
    }
    return argc < 3;
}
