// SPDX-License-Identifier: Apache-2.0
// gpufl from Rust, without a crate: scopes that end when their guard is dropped, a counter, a mark and a range.
//
//   rustc --edition 2021 -O examples/ffi/scopes.rs -L build/lib
//   LD_LIBRARY_PATH=build/lib GPUFL_PROFILING_ENGINE=Trace ./scopes
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int, c_void};

#[link(name = "gpufl")]
extern "C" {
    fn gpufl_init(options: *const c_void) -> c_int;
    fn gpufl_shutdown();
    fn gpufl_last_error() -> *const c_char;
    fn gpufl_session_dir() -> *const c_char;
    fn gpufl_is_recording() -> c_int;
    fn gpufl_scope_push_sized(name: *const c_char, name_size: usize, tag: *const c_char, tag_size: usize, repeat: u32, warmup: u32);
    fn gpufl_scope_end();
    fn gpufl_range_start(name: *const c_char) -> u64;
    fn gpufl_range_end(range: u64);
    fn gpufl_mark(name: *const c_char);
    fn gpufl_counter(name: *const c_char, value: f64);
    fn gpufl_thread_name(name: *const c_char);
}

/// A region of this thread's work. It ends on the thread that began it, so it is neither Send nor Sync.
struct Scope(PhantomData<*const ()>);

impl Scope {
    fn new(name: &str) -> Scope {
        // Borrowed for the call only, and without a NUL at its end.
        unsafe { gpufl_scope_push_sized(name.as_ptr().cast(), name.len(), std::ptr::null(), 0, 0, 0) };
        Scope(PhantomData)
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        unsafe { gpufl_scope_end() }
    }
}

fn text(pointer: *const c_char) -> String {
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn main() {
    // Without options, environment and configuration file decide.
    if unsafe { gpufl_init(std::ptr::null()) } != 0 {
        eprintln!("gpufl: {}", text(unsafe { gpufl_last_error() })); // what follows does nothing
    }
    unsafe { gpufl_thread_name(b"main\0".as_ptr().cast()) };
    let request = unsafe { gpufl_range_start(b"request\0".as_ptr().cast()) };
    {
        let _epoch = Scope::new("epoch");
        for step in 0..3 {
            let _step = Scope::new("step");
            unsafe { gpufl_counter(b"queue length\0".as_ptr().cast(), f64::from(step)) };
            // launch kernels here
        }
    }
    unsafe { gpufl_range_end(request) }; // may be on another thread
    unsafe { gpufl_mark(b"trained\0".as_ptr().cast()) };
    let is_recording = unsafe { gpufl_is_recording() } != 0;
    unsafe { gpufl_shutdown() };
    if is_recording {
        println!("{}", text(unsafe { gpufl_session_dir() }));
    }
}
