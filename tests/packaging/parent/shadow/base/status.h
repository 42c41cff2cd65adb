/* SPDX-License-Identifier: Apache-2.0 */
#error "a header of the other project, and not src/base/status.h"
