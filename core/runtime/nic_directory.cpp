#include "core/runtime/nic_directory.hpp"

#include <fmt/core.h>

#include "topology/assignment_bytes.hpp"
#include "topology/reason.hpp"

namespace npushmem {

namespace {

// What a peer needs to know: names, ports and rails.
std::vector<std::byte> packed(topology::PeAssignment nics) {
    nics.device.clear();
    nics.reason.clear();
    for (auto& nic : nics.nics) nic.shared_with.clear();
    topology::Assignment alone;
    alone.pes.push_back(std::move(nics));
    return topology::to_bytes(alone);
}

Result<topology::PeAssignment> unpacked(std::span<const std::byte> bytes, int pe) {
    auto alone = topology::assignment_from(bytes);
    if (!alone.ok()) return alone.status().within(fmt::format("NICs of PE {}", pe));
    if (alone.value().pes.size() != 1)
        return Status{Code::protocol, fmt::format("PE {} sent the NICs of {} PEs", pe, alone.value().pes.size())};
    return std::move(alone.value().pes.front());
}

}  // namespace

Result<NicDirectory> NicDirectory::gather(Bootstrap& bootstrap, int my_pe, topology::PeAssignment mine) {
    auto gathered = GatheredBytes::gather(bootstrap, packed(std::move(mine)));
    if (!gathered.ok()) return gathered.status();
    NicDirectory directory;
    directory.known_ = true;
    directory.my_pe_ = my_pe;
    directory.nics_ = std::move(gathered).value();
    return directory;
}

Result<std::vector<topology::NicPair>> NicDirectory::pairs(int pe) const {
    if (!known_) return std::vector<topology::NicPair>{};
    const auto mine = unpacked(nics_.of(my_pe_), my_pe_);
    if (!mine.ok()) return mine.status();
    const auto theirs = unpacked(nics_.of(pe), pe);
    if (!theirs.ok()) return theirs.status();
    return topology::pair_nics(mine.value(), theirs.value());
}

std::string NicDirectory::describe(int pe) const {
    const auto found = pairs(pe);
    if (!found.ok()) return found.status().message();
    if (found.value().empty()) return {};
    const auto& best = found.value().front();
    return fmt::format("{} -> {}, {}", name_of(best.mine), name_of(best.theirs), topology::why(best));
}

}  // namespace npushmem
