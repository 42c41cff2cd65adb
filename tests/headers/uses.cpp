// SPDX-License-Identifier: Apache-2.0
// gpufl.hpp as programs write it; compiled by tools/check_headers.sh in every mode.
#include <gpufl/gpufl.hpp>

#if defined(__cpp_impl_coroutine) && __has_include(<coroutine>) && !defined(__CUDACC__)
#include <coroutine>
struct Task {
    struct promise_type {
        Task get_return_object()
        {
            return {};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_void() {}
        void unhandled_exception() {}
    };
};
Task coroutine()
{
    GFL_SCOPE("coroutine")
    {
        co_await std::suspend_never{};
    }
    co_return;
}
#endif

int counted = 0;

template <typename T> T scoped(T value)
{
    GFL_FUNCTION();
    GFL_SCOPE("template")
    {
        GFL_SCOPE("inner", "tag")
        {
            if (value > T{1})
                return value;
        }
    }
    return T{};
}

struct Member {
    int method() const
    {
        GFL_BLOCK("block", gpufl::ScopeMeta{}.setTag("a").setRepeat(2));
        return gpufl::monitor("monitor", [this] { return value; });
    }
    int value = 1;
};

constexpr int in_a_constant_expression(int n)
{
    return n + 1;
}

int main(int argc, char **)
{
    gpufl::InitOptions options;
    options.app_name = "uses";
    gpufl::init(options);
    const std::string name = "string";
    const std::string_view view = name;
    gpufl::threadName("main");
    gpufl::ScopedMonitor literal("literal"), text(name), part(view.substr(1)), tagged("a", "b"), both(name, name);
    gpufl::ScopedMonitor counts("counts", gpufl::ScopeMeta{"tag", 2, 1});
    if (argc > 1)
        GFL_SCOPE("if")
        {
            counted++;
        }
    else
        GFL_SCOPE_TAGGED("else", name)
        {
            counted--;
        }
    GFL_SCOPE(view)
    {
        GFL_SCOPE("same line")
        {
            counted++;
        }
        GFL_SCOPE("again")
        {
            counted++;
        }
    }
    for (int i = 0; i < 3; i++)
        GFL_SCOPE("loop")
        {
            if (i == 1)
                break;
        }
    GFL_BENCH("bench")
    {
        counted++;
    };
    GFL_BENCH("repeated", gpufl::ScopeMeta{"tag", 2, 1})
    {
        counted++;
    };
    GFL_BENCH(name, gpufl::ScopeMeta{}.setRepeat(2).setWarmup(1))
    {
        return counted++;
    };
    gpufl::mark("mark");
    gpufl::counter(view, 1);
    gpufl::Range range("range"), moved(std::move(range));
    range = std::move(moved);
    range.end();
    gpufl::systemStart("phase");
    gpufl::systemStop("phase");
    const int reference = gpufl::monitor(name, "tag", [] { return in_a_constant_expression(1); });
    gpufl::shutdown();
    return scoped(2) + Member{}.method() + reference + static_cast<int>(scoped(1.0)) + gpufl::generateReport("r.txt") +
           gpufl::uploadLogs().success;
}
