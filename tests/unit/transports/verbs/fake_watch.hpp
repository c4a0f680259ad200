// A watch over memory that tells what the test says.
#pragma once

#include <vector>

#include "transports/verbs/memory_watch.hpp"

namespace npushmem::fakes {

class FakeWatch final : public verbs::MemoryWatch {
public:
    bool watch(const verbs::AddressRange& pages) override {
        watched.push_back(pages);
        return can;
    }
    Position now() override { return gone.size(); }
    ChangesResult changes(Position& position, const ChangeHandler& tell) override {
        for (; position < gone.size(); ++position) tell(gone[position]);
        return told;
    }

    std::vector<verbs::AddressRange> watched;
    std::vector<verbs::AddressRange> gone;
    bool can = true;
    ChangesResult told = ChangesResult::all;
};

}  // namespace npushmem::fakes
