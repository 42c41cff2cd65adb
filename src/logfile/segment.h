/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed segments: <channel>.NNNNNN.log.zst.
 *
 * One zstd frame (level 1, content checksum) with the plain file's lines: each batch in the cols/delta form of
 * format/batch.h, every line with its seq and crc. Then a zstd skippable frame (magic 0x184D2A5A) with a JSON footer
 * (a line with a crc, too) and, in its last 8 bytes, the payload's size in hex, so that the footer can be found from
 * the end of the file. `zstdcat` shows plain NDJSON.
 *
 * Sealing: write <name>.zst.part, fsync, rename, unlink the plain file. At any time either the plain or the sealed file
 * is complete. A file with a damaged or torn line is not sealed, so that the damage remains visible. */
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

/* Seals <channel>.<index>.log in the directory. cancel (may be NULL) is checked between lines; when true, the partial
 * file is removed and GPUFL_E_NOT_RUNNING returned. GPUFL_E_DAMAGED: a damaged or torn line; GPUFL_E_NOT_FOUND: the
 * file has no lines. */
NODISCARD gpufl_status segment_seal(int dir_fd, enum channel channel, uint64_t index, const atomic_bool *cancel,
                                    struct segment_footer *footer, uint64_t *sealed_bytes, struct problem *problem);
/* Finds and checks the footer of an open sealed file. GPUFL_E_DAMAGED: no valid footer. */
NODISCARD gpufl_status segment_footer_read(int fd, struct segment_footer *footer, struct problem *problem);

/* Seals every rotated and live file of a finished session. GPUFL_E_BUSY: its writer is running; GPUFL_E_DAMAGED: files
 * with damaged lines stay plain (named in problem). */
NODISCARD gpufl_status seal_session(const char *dir, struct problem *problem);

#endif
