// SPDX-License-Identifier: BSD-3-Clause
// The calls of the calling thread.
#pragma once

namespace npushmem::api {

// Returns whether the calling thread is inside a call of this library that it has entered before the present one: a
// signal handler interrupted that call, or the call runs code of the program. The thread may hold locks of the library
// and of transports, and the call has not ended. Without unwind tables in the program the answer may be false.
bool is_inside_earlier_call();

}  // namespace npushmem::api
