// SPDX-License-Identifier: Apache-2.0

// gpufl from Go: cgo compiles gpufl.h itself, so its inline functions, constants and structures are there. A scope belongs
// to a thread of the system, and goroutines move between those: scope keeps its goroutine on one thread until it ends.
//
//	PKG_CONFIG_PATH=PREFIX/lib/pkgconfig go build -o scopes examples/ffi/scopes.go
//	LD_LIBRARY_PATH=PREFIX/lib GPUFL_PROFILING_ENGINE=Trace ./scopes
package main

/*
#cgo pkg-config: gpufl
#include <gpufl/gpufl.h>
#include <stdlib.h>

static gpufl_status start(const char *app_name)
{
    gpufl_options options = GPUFL_OPTIONS_INIT;
    options.app_name = app_name;
    return gpufl_init(&options);
}
static void push(_GoString_ name)
{
    if (gpufl_is_recording())
        gpufl_scope_push_sized(_GoStringPtr(name), _GoStringLen(name), NULL, 0, 0, 0);
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

// scope begins a scope and returns what ends it: defer scope("step")().
func scope(name string) func() {
	runtime.LockOSThread()
	C.push(name)
	return func() {
		C.gpufl_scope_end()
		runtime.UnlockOSThread()
	}
}

func step(number int, queue *C.char) {
	defer scope("step")()
	C.gpufl_counter(queue, C.double(number))
	// launch kernels here
}

func epoch() {
	defer scope("epoch")()
	queue := C.CString("queue length")
	defer C.free(unsafe.Pointer(queue))
	for i := 0; i < 3; i++ {
		step(i, queue)
	}
}

func main() {
	name, request, trained := C.CString("go_scopes"), C.CString("request"), C.CString("trained")
	if C.start(name) != C.GPUFL_OK {
		fmt.Fprintln(os.Stderr, "gpufl:", C.GoString(C.gpufl_last_error())) // what follows does nothing
	}
	running := C.gpufl_range_start(request)
	epoch()
	C.gpufl_range_end(running) // may be on another thread
	C.gpufl_mark(trained)
	isRecording := C.gpufl_is_recording() != 0
	C.gpufl_shutdown()
	if isRecording {
		fmt.Println(C.GoString(C.gpufl_session_dir()))
	}
}
