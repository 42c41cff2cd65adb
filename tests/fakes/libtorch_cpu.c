/* SPDX-License-Identifier: Apache-2.0 */
/* As much of PyTorch's library as libgpufl uses: the number of the backward pass that the calling thread works on. */
static _Thread_local int current = -1;

__attribute__((visibility("default"))) int get_current_graph_task_id(void) __asm__(
    "_ZN5torch8autograd25get_current_graph_task_idEv");
int get_current_graph_task_id(void)
{
    return current;
}

__attribute__((visibility("default"))) void fake_graph_task_set(int task);
void fake_graph_task_set(int task)
{
    current = task;
}
