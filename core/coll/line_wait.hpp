// Waiting at a line that a member stores to, and waking those who do: the same for all small collective operations.
#pragma once

#include <fmt/core.h>

#include "core/base/futex_counter.hpp"
#include "core/base/wait.hpp"

namespace npushmem::coll {

// Until `ready()`, which loads the line with acquire. `parks`: who stores there looks for sleepers, so that this may
// sleep until it is woken. `pe`: whose store it is, for the message.
template <class Ready>
[[gnu::noinline]] Status wait_at_line(const Waiter& waiter, FutexCounter line, Ready&& ready, WaitFor what, bool parks,
                                      int pe) {
    // Loads of the line before anything else is done about it: longer than a line needs from one cache to another,
    // shorter than it takes to let somebody else run.
    constexpr int first_polls = 200;
    for (int i = 0; i < first_polls && waiter.budget().polls != 0; ++i)
        if (ready()) return {};
    FutexParking parking{line};
    what.parking = parks ? &parking : nullptr;
    WaitFailure failure;
    const Code code = waiter.until(ready, what, &failure);
    if (parking.woken() != 0) waiter.count_woken(parking.woken());
    if (code == Code::ok) return {};
    return {code, fmt::format("{}; nothing has come from PE {}", describe(what, failure), pe)};
}

}  // namespace npushmem::coll
