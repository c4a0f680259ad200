// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/job_membership.hpp"

#include <fmt/core.h>

namespace npushmem {

JobMembership::JobMembership(std::unique_ptr<Bootstrap> bootstrap)
    : bootstrap_(std::move(bootstrap)), my_pe_(bootstrap_->rank()), npes_(bootstrap_->nranks()) {}

Status JobMembership::check_rank() const {
    if (npes_ < 1 || my_pe_ < 0 || my_pe_ >= npes_)
        return {Code::protocol, fmt::format("the bootstrap gave rank {} of {}", my_pe_, npes_)};
    return {};
}

namespace {

HostLayout layout_of(const PeRecords& records) {
    if (records.are_alike()) return HostLayout::of_one_host(static_cast<int>(records.pes.size()));
    std::vector<npushmem_host_id> identities;
    identities.reserve(records.common.size());
    for (const CommonRecord& each : records.common) identities.push_back(each.host);
    return HostLayout(identities);
}

}  // namespace

Status JobMembership::exchange_records(const Settings& settings, const StaticVariablesRecord& statics) {
    auto tuning = barrier::Tuning::read(settings.coll_tuning_file);
    if (!tuning.ok()) return tuning.status().within("NPUSHMEM_COLL_TUNING_FILE");
    tuning_ = std::move(tuning).value();
    auto mine = make_pe_record(settings, tuning_.hash(), statics);
    if (!mine.ok()) return mine.status();
    auto all = exchange_pe_records(*bootstrap_, mine.value());
    if (!all.ok()) return all.status();
    records_ = std::move(all).value();
    auto spaces = ProcessSpaces::join(*bootstrap_, records_, my_pe_, settings);
    if (!spaces.ok()) return spaces.status();
    spaces_ = std::move(spaces).value();
    layout_ = layout_of(records_);
    pes_ = PeTable(records_);
    records_.pes = std::vector<PeRecord>();  // frees it, before the start gathers more
    return {};
}

}  // namespace npushmem
