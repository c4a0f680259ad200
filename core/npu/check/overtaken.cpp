#include "core/npu/check/overtaken.hpp"

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

void Overtaken::tell(const std::function<void(const Access&, const Access&, Address)>& tell) {
    for (const Sent& sent : sent_)
        if (sent.overtaken_by.exists()) tell(sent.overtaken_by, sent.copy, sent.begin);
    sent_.clear();
}

}  // namespace npushmem::npu::check
