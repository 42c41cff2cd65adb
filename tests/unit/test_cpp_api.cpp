// SPDX-License-Identifier: Apache-2.0
// The C++ API as the documentation shows it.
#include <gpufl/gpufl.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

static int failures;

static void check(bool is_true, const char *claim)
{
    std::printf("%s %s\n", is_true ? "ok    " : "not ok", claim);
    failures += !is_true;
}

static std::string scope_log()
{
    std::ifstream file(std::string(gpufl_session_dir()) + "/scope.log");
    return std::string(std::istreambuf_iterator<char>(file), {});
}

static bool has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

static int branch(bool is_first)
{
    if (is_first)
        GFL_SCOPE("one")
        {
            return 1;
        }
    else
        GFL_SCOPE_TAGGED("two", "tag")
        {
            return 2;
        }
    return 0;
}

static bool is_inert(const gpufl::UploadResult &result)
{
    return result.success && result.events_uploaded == 0;
}

int main()
{
    char dir[] = "/tmp/gpufl-cpp-XXXXXX";
    if (!mkdtemp(dir))
        return 1;
    unsetenv("GPUFL_DISABLED");

    gpufl::InitOptions opts;
    opts.app_name = "my_app";
    opts.log_path = dir;
    opts.backend = gpufl::BackendKind::None;
    opts.continuous_system_sampling = true;
    opts.system_sample_rate_ms = 50;
    check(gpufl::init(opts), "init starts a session");

    check(branch(true) == 1 && branch(false) == 2, "an else behind a scope belongs to the if before it");
    int runs = 0;
    GFL_SCOPE("training"){GFL_SCOPE("forward_pass"){runs++;
}
GFL_SCOPE_TAGGED("backward_pass", "batch_42")
{
    runs++;
}
}
{
    gpufl::ScopedMonitor scope("data_loading");
}
{
    gpufl::ScopedMonitor scope("handing_out");
    auto job = gpufl::bind([](int value) {
        GFL_BLOCK("handed_out");
        return value + 1;
    });
    int sum = 0;
    std::thread([&] { sum = job(41); }).join();
    check(sum == 42, "a bound function takes arguments and returns what the function returns");
    const gpufl::ScopeToken token = gpufl::currentScope();
    std::thread([token] {
        auto adoption = gpufl::adopt(token);
        GFL_BLOCK("adopted");
    }).join();
}
int result = gpufl::monitor("inference", [&]() { return 42; });
check(result == 42, "monitor returns what the function returns");
int measured = 0;
GFL_BENCH("matmul", gpufl::ScopeMeta{}.setRepeat(10).setWarmup(3))
{
    measured++;
};
check(measured == 13, "a benchmark runs warm-up and measured iterations");
try {
    GFL_SCOPE("throwing")
    {
        throw std::runtime_error("x");
    }
} catch (const std::runtime_error &) {
}
int thrown = 0;
try {
    GFL_BENCH("throws", gpufl::ScopeMeta{}.setRepeat(100))
    {
        if (++thrown == 7)
            throw std::runtime_error("x");
    };
} catch (const std::runtime_error &) {
}
const gpufl_scope_meta planned = {sizeof planned, 100, 0, nullptr};
gpufl_scope_begin_meta("breaks", &planned);
gpufl_scope_end_counted(5);
gpufl::systemStart("phase_name");
gpufl::systemStop("phase_name");
gpufl::UploadOptions upload;
upload.backend_url = "http://127.0.0.1:9";
upload.api_key = "gpfl_secret";
upload.timeout_ms = 200;
gpufl::UploadResult uploaded = gpufl::uploadLogs(upload);
check(!uploaded.success && !uploaded.message.empty(), "a running session is not uploaded");
gpufl::shutdown();
uploaded = gpufl::uploadLogs(upload);
check(!uploaded.success && uploaded.events_uploaded == 0, "an upload to nobody fails and the program goes on");
check(!uploaded.message.empty() && !has(uploaded.message, "gpfl_secret"), "its message does not tell the key");

std::string log = scope_log();
check(runs == 2, "scope bodies run once");
for (const char *path :
     {"\"training\"", "\"training|forward_pass\"", "\"training|backward_pass\"", "\"batch_42\"", "\"data_loading\"",
      "\"inference\"", "\"handing_out|handed_out\"", "\"handing_out|adopted\"", "\"matmul\"", "\"throwing\""})
    check(has(log, path), path);

std::string report = std::string(dir) + "/report.txt";
check(gpufl::generateReport(report), "a report is written");
std::ifstream file(report);
std::string text(std::istreambuf_iterator<char>(file), {});
check(has(text, "matmul"), "the report names the benchmark");
check(has(text, " x 7"), "a benchmark that threw is averaged over what began");
check(has(text, " x 5"), "and so is one that C ended early");

gpufl::InitOptions off;
off.enabled = false;
check(!gpufl::init(off), "enabled = false makes init return false");
uploaded = gpufl::uploadLogs(off);
check(is_inert(uploaded), "uploadLogs with enabled = false succeeds with nothing sent");
uploaded = gpufl::uploadLogs(upload);
check(is_inert(uploaded), "after a disabled init every upload is inert");
check(gpufl::init(opts), "a later init starts a session again");
gpufl::shutdown();
std::string said = std::string(dir) + "/stderr.txt";
opts.remote_upload = true;
check(std::freopen(said.c_str(), "w", stderr) && gpufl::init(opts), "a deprecated option starts a session");
gpufl::shutdown();
std::fflush(stderr);
std::ifstream said_file(said);
std::string line(std::istreambuf_iterator<char>(said_file), {});
check(!gpufl::generateReport(std::string(dir) + "/nowhere/report.txt"), "a report to an invalid path fails");
std::fflush(stderr);
said_file.clear();
std::string refusal(std::istreambuf_iterator<char>(said_file), {});
check(has(refusal, "gpufl: cannot write the report to '") && has(refusal, "/nowhere/report.txt': No such file"),
      "and one line on standard error says why");
check(has(line, "gpufl: remote_upload is deprecated") && std::count(line.begin(), line.end(), '\n') == 1,
      "and one line on standard error reports it");
check(!gpufl::uploadLogs(upload).success, "and uploads are real again");
setenv("GPUFL_DISABLED", "1", 1);
check(!gpufl::init(opts), "GPUFL_DISABLED wins over the options");
uploaded = gpufl::uploadLogs(opts);
check(is_inert(uploaded), "uploadLogs while disabled succeeds with nothing sent");
std::filesystem::remove_all(dir);
return failures != 0;
}
