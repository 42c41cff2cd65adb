# SPDX-License-Identifier: Apache-2.0
# gpufl from Julia, without a package: scopes as do-blocks, a counter, a mark and a range.
#
#   LD_LIBRARY_PATH=build/lib GPUFL_PROFILING_ENGINE=Trace julia examples/ffi/scopes.jl
#
# Run with Julia 1.5; its tests check the types of every call against gpufl.h.
#
# A scope belongs to a thread of the system. A task that may be moved to another thread must not yield inside of one:
# use Threads.@threads :static, or tasks with `sticky`.
const libgpufl = "libgpufl.so.1"

"""    scope(body, name)

Runs body() inside of a scope: scope("step") do ... end"""
function scope(body, name::String)
    # Borrowed for the call only; sizes are in bytes.
    ccall((:gpufl_scope_push_sized, libgpufl), Cvoid, (Ptr{UInt8}, Csize_t, Ptr{UInt8}, Csize_t, UInt32, UInt32),
          name, sizeof(name), C_NULL, 0, 0, 0)
    try
        return body()
    finally
        ccall((:gpufl_scope_end, libgpufl), Cvoid, ())
    end
end

counter(name::String, value) = ccall((:gpufl_counter, libgpufl), Cvoid, (Cstring, Cdouble), name, value)
mark(name::String) = ccall((:gpufl_mark, libgpufl), Cvoid, (Cstring,), name)
range_start(name::String) = ccall((:gpufl_range_start, libgpufl), UInt64, (Cstring,), name)
range_end(range::UInt64) = ccall((:gpufl_range_end, libgpufl), Cvoid, (UInt64,), range)
thread_name(name::String) = ccall((:gpufl_thread_name, libgpufl), Cvoid, (Cstring,), name)
is_recording() = ccall((:gpufl_is_recording, libgpufl), Cint, ()) != 0

function main()
    # Without options, environment and configuration file decide.
    if ccall((:gpufl_init, libgpufl), Cint, (Ptr{Cvoid},), C_NULL) != 0
        reason = unsafe_string(ccall((:gpufl_last_error, libgpufl), Cstring, ()))
        println(stderr, "gpufl: ", reason) # what follows does nothing
    end
    thread_name("main")
    request = range_start("request")
    scope("epoch") do
        for step in 0:2
            scope("step") do
                counter("queue length", step)
                # launch kernels here
            end
        end
    end
    range_end(request) # may be on another thread
    mark("trained")
    was_recording = is_recording()
    ccall((:gpufl_shutdown, libgpufl), Cvoid, ())
    if was_recording
        println(unsafe_string(ccall((:gpufl_session_dir, libgpufl), Cstring, ())))
    end
end

main()
