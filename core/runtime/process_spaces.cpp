// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/process_spaces.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace npushmem {

namespace {

// Returns for each PE the first PE that could share memory with it.
std::vector<std::size_t> first_of_each(const PeRecords& records) {
    std::map<std::tuple<std::uint64_t, std::uint32_t, std::int32_t>, std::size_t> by_host;
    std::vector<std::size_t> first;
    first.reserve(records.pes.size());
    for (std::size_t pe = 0; pe < records.pes.size(); ++pe) {
        const npushmem_host_id& host = records.common_of(pe).host;
        first.push_back(by_host.try_emplace({host.machine, host.user, host.emulated}, first.size()).first->second);
    }
    return first;
}

}  // namespace

Result<ProcessSpaces> ProcessSpaces::join(Bootstrap& bootstrap, PeRecords& records, int my_pe,
                                          const Settings& settings) {
    ProcessSpaces spaces;
    if (records.common.size() == 1) return spaces;
    const std::vector<std::size_t> first = first_of_each(records);
    const auto is_apart = [&](std::size_t pe) {
        return records.common_of(pe).process_space != records.common_of(first[pe]).process_space;
    };
    std::vector<std::size_t> apart;
    for (std::size_t pe = 0; pe < records.pes.size(); ++pe)
        if (is_apart(pe)) apart.push_back(pe);
    if (apart.empty()) return spaces;

    const auto me = static_cast<std::size_t>(my_pe);
    const bool shares = settings.share_between_containers;
    const auto folders = meeting_folders(settings.heap_dir);
    const bool is_first = std::ranges::any_of(apart, [&](std::size_t pe) { return first[pe] == me; });
    if (shares && is_first)
        if (auto offer = DescriptorOffer::open(folders); offer.ok()) spaces.offer_ = std::move(offer).value();
    const auto offered = gather(bootstrap, spaces.offer_ ? spaces.offer_->address() : OfferAddress{});
    if (!offered.ok()) return offered.status();
    if (const OfferAddress& address = offered.value()[first[me]]; shares && is_apart(me) && address.exists())
        if (auto call = DescriptorCall::connect(address, folders, my_pe); call.ok())
            spaces.call_ = std::move(call).value();
    const auto connected = gather(bootstrap, static_cast<std::uint64_t>(spaces.call_.has_value()));
    if (!connected.ok()) return connected.status();

    std::vector<int> callers;
    for (const std::size_t pe : apart) {
        if (connected.value()[pe] == 0) continue;
        records.common_of(pe).host.space = records.common_of(first[pe]).host.space;
        if (first[pe] == me) callers.push_back(static_cast<int>(pe));
    }
    const Status accepted = spaces.offer_ ? spaces.offer_->accept(callers) : Status{};
    return accepted.ok() ? Result<ProcessSpaces>(std::move(spaces)) : Result<ProcessSpaces>(accepted);
}

}  // namespace npushmem
