// H8 towards PEs of other processes: copies that a signal to the same PE has overtaken, and that nothing of this launch
// announces later. One for all cores of a launch, because another core than the copying one may announce.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/npu/check/access.hpp"

namespace npushmem::npu::check {

class Overtaken {
public:
    using Address = std::uintptr_t;
    static constexpr int any_pe = -1;

    void sent(int pe, Address begin, const Access& copy) { sent_.push_back({pe, begin, copy, {}}); }
    // A store to a line of that PE was still in the cache when a core signalled to it.
    void unflushed(int pe, Address line, const Access& store, const Access& signal);
    // The line was written back.
    void written_back(Address line, const Access& flush);
    // `clock`: what the signal is ordered behind. Kept for copies of its own core that are in flight.
    void signalled(int pe, const Access& signal, const Clock& clock);
    // The same without that: an atomic, or (any_pe) a word of this PE, which anybody may poll.
    void announced(int pe, const Clock& clock);
    // When the launch ends. tell(signal, copy, where it goes), for each; then they are forgotten.
    void tell(const std::function<void(const Access&, const Access&, Address)>& tell);

private:
    struct Sent {
        int pe;
        Address begin;
        Access copy;
        Access overtaken_by;
    };

    std::vector<Sent> sent_;  // and not yet announced
};

}  // namespace npushmem::npu::check
