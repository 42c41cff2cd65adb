/* SPDX-License-Identifier: Apache-2.0 */
/* A program's functions may be named as those inside of libgpufl.a. */
int session_start(void);
int options_resolve(void);
int ZSTD_isError(void);
int crc32(void);

int session_start(void)
{
    return 1;
}
int options_resolve(void)
{
    return 2;
}
int ZSTD_isError(void)
{
    return 3;
}
int crc32(void)
{
    return 4;
}
