// SPDX-License-Identifier: Apache-2.0
// What gpufl.hpp's scopes cost without a session, for bench_scope.c.
#include <gpufl/gpufl.hpp>

#include <chrono>

template <typename Body> static double ns_each(Body &&body)
{
    constexpr int turns = 50000000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < turns; i++) {
        body();
        __asm__ volatile("" ::: "memory");
    }
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / turns;
}

extern "C" double tagged_scope_ns(void)
{
    return ns_each([] { const gpufl::ScopedMonitor scope("forward_pass", "batch"); });
}

extern "C" double monitor_call_ns(void)
{
    return ns_each([] { gpufl::monitor("forward_pass", [] {}); });
}
