#include "core/npu/check/overtaken.hpp"

#include <limits>

namespace npushmem::npu::check {

void Overtaken::announced(int pe, const Clock& clock) {
    std::erase_if(sent_,
                  [&](const Sent& sent) { return (pe == any_pe || sent.pe == pe) && sent.copy.complete(clock); });
}

void Overtaken::signalled(int pe, const Access& signal, const Clock& clock) {
    announced(pe, clock);
    for (Sent& sent : sent_)
        if (sent.pe == pe && sent.copy.core() == signal.core() && !sent.overtaken_by.exists())
            sent.overtaken_by = signal;
}

void Overtaken::unflushed(int pe, Address line, const Access& store, const Access& signal) {
    for (const Sent& sent : sent_)
        if (sent.begin == line && sent.copy.agent == store.agent) return;
    Access never_complete = store;
    never_complete.sequence = std::numeric_limits<std::uint32_t>::max();
    sent_.push_back({pe, line, never_complete, signal});
}

void Overtaken::written_back(Address line, const Access& flush) {
    for (Sent& sent : sent_)
        if (sent.begin == line && sent.copy.agent == flush.agent) sent.copy.sequence = flush.sequence;
}

void Overtaken::tell(const std::function<void(const Access&, const Access&, Address)>& tell) {
    for (const Sent& sent : sent_)
        if (sent.overtaken_by.exists()) tell(sent.overtaken_by, sent.copy, sent.begin);
    sent_.clear();
}

}  // namespace npushmem::npu::check
