/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/name_weights.h"

#include "analysis/statistics.h"

void name_weights_add(struct name_weights *weights, uint32_t name, int64_t weight)
{
    for (int i = 0; i < names_kept; i++) {
        if (weights->names[i] == name && weights->weights[i]) {
            weights->weights[i] = sum_saturated(weights->weights[i], weight);
            return;
        }
    }
    int lightest = 0;
    int64_t least = weights->weights[0];
    for (int i = 1; i < names_kept; i++) {
        bool is_less = weights->weights[i] < least;
        lightest = is_less ? i : lightest;
        least = is_less ? weights->weights[i] : least;
    }
    int64_t taken = least < weight ? least : weight;
    for (int i = 0; taken && i < names_kept; i++)
        weights->weights[i] -= taken;
    if (weight > taken) {
        weights->names[lightest] = name;
        weights->weights[lightest] = weight - taken;
    }
}

uint32_t name_weights_top(const struct name_weights *weights)
{
    int top = 0;
    for (int i = 1; i < names_kept; i++)
        if (weights->weights[i] > weights->weights[top])
            top = i;
    return weights->names[top];
}
