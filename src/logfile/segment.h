/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed segments: <channel>.NNNNNN.log.zst.
 *
 * One zstd frame (level 1, content checksum) holding the plain file's lines, each
 * batch in the cols/delta shape of format/batch.h, every line with its own seq
 * and crc; then a zstd skippable frame (magic 0x184D2A5A) with a JSON footer
 * (a line with a crc, too) and, as its last 8 bytes, the payload's size in hex,
 * so that it is found from the end. `zstdcat` shows plain NDJSON.
 *
 * Sealing: write <name>.zst.part, fsync, rename, unlink the plain file. Killed
 * anywhere in between, either the plain or the sealed file is whole. A file with
 * a damaged or torn line is not sealed: the damage stays visible. */
#ifndef GPUFL_LOGFILE_SEGMENT_H
#define GPUFL_LOGFILE_SEGMENT_H

#include "base/status.h"
#include "format/catalogue.h"

#include <stdatomic.h>
#include <stdint.h>

#define SEGMENT_FORMAT "gpufl-segment-1"

struct segment_footer {
    char channel[16];
    uint64_t segment, first_seq, last_seq, lines;
    uint64_t plain_bytes; /* of the plain file */
    uint64_t frame_bytes; /* everything before the skippable frame */
    uint32_t frame_crc32c;
};

/* Seals <channel>.<index>.log in the directory. cancel (may be NULL): looked at
 * between lines; when true the partial file is removed and GPUFL_E_NOT_RUNNING returned.
 * GPUFL_E_DAMAGED: a damaged or torn line; GPUFL_E_NOT_FOUND: it has no lines. */
NODISCARD gpufl_status segment_seal(int dir_fd, enum channel channel, uint64_t index, const atomic_bool *cancel,
                                    struct segment_footer *footer, uint64_t *sealed_bytes, struct problem *problem);
/* Finds and checks the footer of an open sealed file. GPUFL_E_DAMAGED: there is no good one. */
NODISCARD gpufl_status segment_footer_read(int fd, struct segment_footer *footer, struct problem *problem);

/* Seals every rotated and live file of a finished session. GPUFL_E_BUSY while its
 * writer lives; GPUFL_E_DAMAGED when files with damaged lines were left plain (named in problem). */
NODISCARD gpufl_status seal_session(const char *dir, struct problem *problem);

#endif
