// SPDX-License-Identifier: Apache-2.0
//
// gpufl for C++17: header-only, on top of gpufl.h.
#ifndef GPUFL_GPUFL_HPP
#define GPUFL_GPUFL_HPP

#include <gpufl/gpufl.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// The inline namespace is renamed whenever the layout of a type below changes, so that parts of a program that were
/// compiled with different versions of this header do not share each other's inline functions.
namespace gpufl {
inline namespace v1 {

enum class BackendKind { Auto, Nvidia, Amd, None };

/// Each level adds to the one before it.
enum class ProfilingEngine {
    Monitor,       ///< health metrics only, no CUPTI; the default
    Trace,         ///< + kernels, copies, synchronization
    PcSampling,    ///< + stall reasons per instruction
    SassMetrics,   ///< + counters per instruction
    RangeProfiler, ///< + hardware throughput counters per scope
    Deep,          ///< PcSampling and SassMetrics in one run
};

/// A field left at its default lets environment and config file decide; any other value wins over both.
struct InitOptions {
    // Identity
    std::string app_name = "gpufl";
    std::string log_path = ""; ///< base directory of the session directories; "" means app_name

    // Upload
    std::string backend_url = ""; ///< server to upload to, host only
    std::string api_key = "";
    std::string api_path = "";  ///< "" means "/api/v1"
    bool remote_upload = false; ///< deprecated, has no effect

    // What to capture
    bool enable_stack_trace = false;
    bool enable_source_collection = true;
    bool enable_external_correlation = true;
    bool enable_synchronization = true;
    bool enable_memory_tracking = false;
    bool enable_cuda_graphs_tracking = false;

    // Sampling
    int system_sample_rate_ms = 0; ///< 0 = no system metrics; every 100 ms where continuous_system_sampling is true
    int kernel_sample_rate_ms = 0; ///< deprecated, has no effect
    bool continuous_system_sampling = false;

    // Profiling engine
    BackendKind backend = BackendKind::Auto;
    ProfilingEngine profiling_engine = ProfilingEngine::Monitor;

    // Advanced
    std::string config_file = "";
    bool flush_logs_always = false;
    std::int64_t max_log_bytes = 0;  ///< 0 = no limit; above it the session's oldest records are dropped
    std::int64_t min_free_bytes = 0; ///< 0 = the larger of 1 GiB and 5 %; below it recording is paused; -1 = never
    bool enable_debug_output = false;
    bool enabled = true;
};

namespace detail {

inline gpufl_switch switch_of(bool value, bool default_value)
{
    return value == default_value ? GPUFL_UNSET : value ? GPUFL_ON : GPUFL_OFF;
}

inline const char *text_of(const std::string &text, const char *default_text = "")
{
    return text == default_text ? nullptr : text.c_str();
}

} // namespace detail

/// Starts the session. False: disabled or failed, and every later call is inert; gpufl_last_error() says why.
/// Where the session differs from the request, one line on standard error says how; GPUFL_QUIET=1 suppresses it.
inline bool init(const InitOptions &opts)
{
    const InitOptions defaults;
    gpufl_options c = GPUFL_OPTIONS_INIT;
    c.app_name = detail::text_of(opts.app_name, "gpufl");
    c.log_path = detail::text_of(opts.log_path);
    c.backend_url = detail::text_of(opts.backend_url);
    c.api_key = detail::text_of(opts.api_key);
    c.api_path = detail::text_of(opts.api_path);
    c.config_file = detail::text_of(opts.config_file);
    c.profiling_engine = opts.profiling_engine == defaults.profiling_engine
                             ? GPUFL_ENGINE_DEFAULT
                             : static_cast<gpufl_engine>(static_cast<int>(opts.profiling_engine) + 1);
    c.backend = static_cast<gpufl_backend>(static_cast<int>(opts.backend));
#define GPUFL_COPY_SWITCH_(field) c.field = detail::switch_of(opts.field, defaults.field)
    GPUFL_COPY_SWITCH_(enabled);
    GPUFL_COPY_SWITCH_(remote_upload);
    GPUFL_COPY_SWITCH_(enable_stack_trace);
    GPUFL_COPY_SWITCH_(enable_source_collection);
    GPUFL_COPY_SWITCH_(enable_external_correlation);
    GPUFL_COPY_SWITCH_(enable_synchronization);
    GPUFL_COPY_SWITCH_(enable_memory_tracking);
    GPUFL_COPY_SWITCH_(enable_cuda_graphs_tracking);
    GPUFL_COPY_SWITCH_(continuous_system_sampling);
    GPUFL_COPY_SWITCH_(flush_logs_always);
    GPUFL_COPY_SWITCH_(enable_debug_output);
#undef GPUFL_COPY_SWITCH_
    c.system_sample_rate_ms = opts.system_sample_rate_ms;
    c.kernel_sample_rate_ms = opts.kernel_sample_rate_ms;
    c.max_log_bytes = opts.max_log_bytes;
    c.min_free_bytes = opts.min_free_bytes;
    return gpufl_init(&c) == GPUFL_OK;
}

inline void shutdown()
{
    gpufl_shutdown();
}

/// Writes the text report of the last session to the file, or to standard output when the path is empty. False: it could
/// not be written, and one line on standard error says why; or gpufl is disabled.
inline bool generateReport(const std::string &output_path = "")
{
    const gpufl_status status = gpufl_generate_report(output_path.c_str());
    if (status == GPUFL_OK || status == GPUFL_E_DISABLED)
        return status == GPUFL_OK;
    std::fprintf(stderr, "gpufl: %s\n", gpufl_last_error());
    return false;
}

/// A field left at its default lets environment and config file decide; any other value wins over both.
struct UploadOptions {
    std::string log_path = ""; ///< a session directory or a directory of them; "" means this process's last session
    std::string backend_url = "";
    std::string api_key = "";
    std::string api_path = ""; ///< "" means "/api/v1"
    int timeout_ms = 300000;   ///< of the whole call
    std::string config_file = "";
};

struct UploadResult {
    bool success = false; ///< everything is with the server
    std::uint64_t events_uploaded = 0;
    std::uint64_t files_uploaded = 0;
    std::uint64_t files_skipped = 0; ///< refused, unreadable or not reached
    std::string message;             ///< one line for people; never contains the key
};

/// Sends finished sessions to a server, and waits for it; after shutdown() only. Never throws, never ends the program.
inline UploadResult uploadLogs(const UploadOptions &opts)
{
    gpufl_upload_options c = GPUFL_UPLOAD_OPTIONS_INIT;
    gpufl_upload_result r = {};
    r.struct_size = sizeof r;
    c.log_path = detail::text_of(opts.log_path);
    c.backend_url = detail::text_of(opts.backend_url);
    c.api_key = detail::text_of(opts.api_key);
    c.api_path = detail::text_of(opts.api_path);
    c.config_file = detail::text_of(opts.config_file);
    c.timeout_ms = opts.timeout_ms;
    (void)gpufl_upload_logs(&c, &r);
    return {r.success != 0, r.events_uploaded, r.files_uploaded, r.files_skipped, r.message};
}
inline UploadResult uploadLogs()
{
    return uploadLogs(UploadOptions{});
}
/// With the options that the session was started with: server, key and log_path come from them.
inline UploadResult uploadLogs(const InitOptions &opts)
{
    if (!opts.enabled)
        return {true, 0, 0, 0, "gpufl is disabled; nothing was sent"};
    UploadOptions upload;
    upload.log_path = opts.log_path;
    upload.backend_url = opts.backend_url;
    upload.api_key = opts.api_key;
    upload.api_path = opts.api_path;
    upload.config_file = opts.config_file;
    return uploadLogs(upload);
}

inline void systemStart(const std::string &name)
{
    gpufl_system_start(name.c_str());
}
inline void systemStop(const std::string &name)
{
    gpufl_system_stop(name.c_str());
}

/// Tag and benchmark counts of a scope; setters return *this so that they chain.
struct ScopeMeta {
    std::string tag;
    std::uint32_t repeat = 0;
    std::uint32_t warmup = 0;

    ScopeMeta &setTag(std::string value)
    {
        tag = std::move(value);
        return *this;
    }
    ScopeMeta &setRepeat(std::uint32_t value)
    {
        repeat = value;
        return *this;
    }
    ScopeMeta &setWarmup(std::uint32_t value)
    {
        warmup = value;
        return *this;
    }
};

/// A scope that lasts as long as the object. Must end on the thread that made it, innermost first.
class ScopedMonitor {
public:
    explicit ScopedMonitor(const char *name)
    {
        gpufl_scope_begin(name);
    }
    explicit ScopedMonitor(std::string_view name)
    {
        if (gpufl_is_recording())
            gpufl_scope_push_sized(name.data(), name.size(), nullptr, 0, 0, 0);
    }
    ScopedMonitor(std::string_view name, std::string_view tag)
    {
        if (gpufl_is_recording())
            gpufl_scope_push_sized(name.data(), name.size(), tag.data(), tag.size(), 0, 0);
    }
    ScopedMonitor(std::string_view name, const ScopeMeta &meta)
    {
        if (gpufl_is_recording())
            gpufl_scope_push_sized(name.data(), name.size(), meta.tag.data(), meta.tag.size(), meta.repeat,
                                   meta.warmup);
    }
    ~ScopedMonitor()
    {
        gpufl_scope_end();
    }
    ScopedMonitor(const ScopedMonitor &) = delete;
    ScopedMonitor &operator=(const ScopedMonitor &) = delete;
};

/// Runs the function inside a scope and returns what it returns.
template <typename Function> decltype(auto) monitor(std::string_view name, Function &&function)
{
    ScopedMonitor scope(name);
    return std::forward<Function>(function)();
}
template <typename Function> decltype(auto) monitor(std::string_view name, std::string_view tag, Function &&function)
{
    ScopedMonitor scope(name, tag);
    return std::forward<Function>(function)();
}

/// Identifies one entry into a scope; 0: none. Other threads may adopt it, also when the scope has ended.
using ScopeToken = gpufl_scope_token;

/// Of the calling thread's innermost scope.
inline ScopeToken currentScope()
{
    return gpufl_scope_current();
}

/// As long as it lives, its thread's work and scopes belong to the token's scope. Must end on the thread that made it.
class [[nodiscard]] Adoption {
public:
    explicit Adoption(ScopeToken token)
    {
        gpufl_scope_adopt(token);
    }
    ~Adoption()
    {
        gpufl_scope_release();
    }
    Adoption(const Adoption &) = delete;
    Adoption &operator=(const Adoption &) = delete;
};

/// auto work = gpufl::adopt(token);
[[nodiscard]] inline Adoption adopt(ScopeToken token)
{
    return Adoption(token);
}

/// The function, running for the scope in which bind was called, on whatever thread it is called.
template <typename Function> auto bind(Function &&function)
{
    return [token = currentScope(), bound = std::decay_t<Function>(std::forward<Function>(function))](
               auto &&...arguments) mutable -> decltype(auto) {
        Adoption adoption(token);
        return std::invoke(bound, std::forward<decltype(arguments)>(arguments)...);
    };
}

/// A span that does not nest, may move to another thread and ends there, such as a request.
class Range {
public:
    Range() = default;
    explicit Range(std::string_view name)
    {
        if (gpufl_is_recording())
            id_ = gpufl_range_start(std::string(name).c_str());
    }
    ~Range()
    {
        end();
    }
    Range(Range &&other) noexcept : id_(std::exchange(other.id_, 0)) {}
    Range &operator=(Range &&other) noexcept
    {
        if (this != &other) {
            end();
            id_ = std::exchange(other.id_, 0);
        }
        return *this;
    }
    Range(const Range &) = delete;
    Range &operator=(const Range &) = delete;
    void end()
    {
        gpufl_range_end(std::exchange(id_, 0));
    }

private:
    std::uint64_t id_ = 0;
};

/// A moment.
inline void mark(std::string_view name)
{
    if (gpufl_is_recording())
        gpufl_mark(std::string(name).c_str());
}
/// The value that a quantity of the program has from now on.
inline void counter(std::string_view name, double value)
{
    if (gpufl_is_recording())
        gpufl_counter(std::string(name).c_str(), value);
}
/// Of the calling thread; may be called before the session begins.
inline void threadName(std::string_view name)
{
    gpufl_thread_name(std::string(name).c_str());
}

namespace detail {

/// The scope of a benchmark: averages are over the iterations that began, also when one throws.
class BenchmarkScope {
public:
    BenchmarkScope(std::string_view name, const ScopeMeta &meta)
    {
        if (gpufl_is_recording())
            gpufl_scope_push_sized(name.data(), name.size(), meta.tag.data(), meta.tag.size(), meta.repeat,
                                   meta.warmup);
    }
    ~BenchmarkScope()
    {
        gpufl_scope_end_counted(begun_);
    }
    BenchmarkScope(const BenchmarkScope &) = delete;
    BenchmarkScope &operator=(const BenchmarkScope &) = delete;
    void begin_iteration()
    {
        begun_++;
    }

private:
    std::uint32_t begun_ = 0;
};

/// Lives in one expression, as long as the name that it is given.
class Benchmark {
public:
    explicit Benchmark(std::string_view name, ScopeMeta meta = {}) : name_(name), meta_(std::move(meta)) {}

    template <typename Function> void operator+(Function &&body) const
    {
        for (std::uint32_t i = 0; i < meta_.warmup; i++)
            body();
        if (meta_.repeat == 0) {
            ScopedMonitor scope(name_, meta_);
            body();
            return;
        }
        BenchmarkScope scope(name_, meta_);
        for (std::uint32_t i = 0; i < meta_.repeat; i++) {
            scope.begin_iteration();
            body();
        }
    }

private:
    std::string_view name_;
    ScopeMeta meta_;
};

} // namespace detail
} // namespace v1
} // namespace gpufl

#define GPUFL_CAT2_(a, b) a##b
#define GPUFL_CAT_(a, b) GPUFL_CAT2_(a, b)

/// GFL_SCOPE("name") { ... } or GFL_SCOPE("name", "tag") { ... }
/// An else that follows belongs to the if around it. GFL_SCOPE("name"); without a block would measure nothing: C++23
/// refuses it (only a block may follow `if consteval {} else`), and gcc -Wextra warns before. GFL_BLOCK is meant then.
#if defined(__cpp_if_consteval)
#define GPUFL_THEN_BLOCK_ \
    if consteval {        \
    } else
#else
#define GPUFL_THEN_BLOCK_
#endif
#define GPUFL_SCOPED_(variable, ...)                           \
    if (::gpufl::ScopedMonitor variable{__VA_ARGS__}; false) { \
    } else                                                     \
        GPUFL_THEN_BLOCK_
#define GFL_SCOPE(...) GPUFL_SCOPED_(GPUFL_CAT_(gfl_scope_, __COUNTER__), __VA_ARGS__)
#define GFL_SCOPE_TAGGED(name, tag) GFL_SCOPE(name, tag)

/// GFL_BLOCK("name"); or GFL_BLOCK("name", "tag"); the scope ends with the block that the statement is in.
/// GFL_FUNCTION(); the same, with the function's name.
#define GFL_BLOCK(...)                                               \
    const ::gpufl::ScopedMonitor GPUFL_CAT_(gfl_block_, __COUNTER__) \
    {                                                                \
        __VA_ARGS__                                                  \
    }
#define GFL_FUNCTION() GFL_BLOCK(static_cast<const char *>(__func__))

/// GFL_BENCH("name", gpufl::ScopeMeta{}.setRepeat(10).setWarmup(3)) { ... };
/// Warm-up runs come before the scope opens; `return` in the body ends one run. An exception ends them all, and averages
/// are over those that began.
#define GFL_BENCH(...) ::gpufl::detail::Benchmark{__VA_ARGS__} + [&]()

#endif
