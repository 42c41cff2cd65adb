// SPDX-License-Identifier: Apache-2.0
// Must not compile as C++23, and warns before: a scope without a block would measure nothing.
#include <gpufl/gpufl.hpp>

void step()
{
    GFL_SCOPE("step");
    gpufl::mark("not inside");
}
