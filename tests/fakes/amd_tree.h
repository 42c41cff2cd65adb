/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of files in the form in which the amdgpu driver shows GPUs in /sys, for
 * GPUFL_SYSFS_ROOT. Numbers are made up, formats are the driver's. */
#ifndef GPUFL_FAKES_AMD_TREE_H
#define GPUFL_FAKES_AMD_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum amd_tree_kind {
    AMD_TREE_MI300X, /* gpu_metrics 1.7, no edge sensor, no fan, ras, KFD */
    AMD_TREE_RX7900, /* gpu_metrics 1.3, fan, no ras */
    AMD_TREE_APU,    /* gpu_metrics 3.0, few sensors, no unique_id */
    AMD_TREE_BROKEN, /* what no driver would show: garbage, loops, huge and unreadable files */
};

/* Adds a GPU to the tree, which is made when it is missing. card: the number in cardN. False with errno. */
bool amd_tree_add(const char *root, enum amd_tree_kind kind, unsigned card, const char *slot);
/* Divides the MI300X of a card, which was added before: KFD shows a node for each partition, numbered in bits 28 to 31 of
 * location_id, or in place of the PCI function as other kernels do. */
bool amd_tree_divide(const char *root, unsigned card, const char *slot, unsigned partitions, bool in_function);
/* A process on the GPU: as KFD shows compute ones (bytes of device memory), or as /proc shows an open device file. */
bool amd_tree_kfd_process(const char *root, unsigned pid, uint32_t gpu_id, uint64_t bytes);
bool amd_tree_drm_process(const char *root, unsigned pid, unsigned fd, unsigned client, const char *slot, uint64_t kib);
/* (Over)writes a file in place, as the driver changes a value; path is relative to the root, directories are made. */
bool amd_tree_write(const char *root, const char *path, const void *bytes, size_t size);
bool amd_tree_text(const char *root, const char *path, const char *text);
/* What KFD calls the GPU of a card, and a partition of it. */
uint32_t amd_tree_gpu_id(unsigned card);
uint32_t amd_tree_partition_id(unsigned card, unsigned partition);

#endif
