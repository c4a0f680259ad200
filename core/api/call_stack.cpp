// SPDX-License-Identifier: BSD-3-Clause
#include "core/api/call_stack.hpp"

#include <dlfcn.h>
#include <unwind.h>

namespace npushmem::api {

namespace {

const void* object_of(const void* address) {
    Dl_info facts{};
    return dladdr(address, &facts) != 0 ? facts.dli_fbase : nullptr;
}

struct Frames {
    const void* library;
    bool left_present_call = false;
    bool in_earlier_call = false;
};

_Unwind_Reason_Code visit(_Unwind_Context* frame, void* argument) {
    auto& frames = *static_cast<Frames*>(argument);
    const bool in_library = object_of(reinterpret_cast<const void*>(_Unwind_GetIP(frame))) == frames.library;
    if (!in_library) frames.left_present_call = true;
    frames.in_earlier_call = frames.left_present_call && in_library;
    return frames.in_earlier_call ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

bool is_inside_earlier_call() {
    Frames frames{object_of(reinterpret_cast<const void*>(&is_inside_earlier_call))};
    (void)_Unwind_Backtrace(visit, &frames);
    return frames.in_earlier_call;
}

}  // namespace npushmem::api
