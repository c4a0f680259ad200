// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/static_variables.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "core/base/parse.hpp"
#include "core/runtime/start_exchange.hpp"

namespace npushmem {

namespace {

// Returns for each PE whether another one runs in its process. PEs that are threads of one process share one set of
// variables.
std::vector<bool> pes_with_shared_process(std::span<const PeRecord> records) {
    const auto process_of = [](const PeRecord& record) {
        return std::tuple(record.host.machine, record.process_space, record.process, record.process_start);
    };
    std::vector<const PeRecord*> sorted;
    for (const PeRecord& record : records) sorted.push_back(&record);
    const auto key = [&](const PeRecord* record) { return process_of(*record); };
    std::ranges::sort(sorted, {}, key);
    std::vector<bool> shared(records.size());
    for (std::size_t i = 1; i < sorted.size(); ++i)
        if (key(sorted[i]) == key(sorted[i - 1]))
            for (const PeRecord* each : {sorted[i], sorted[i - 1]})
                shared[static_cast<std::size_t>(each - records.data())] = true;
    return shared;
}

}  // namespace

StaticVariablesRecord StaticVariables::record_of(const Settings& settings, const ProgramImage& image) {
    if (!settings.static_data) return {0, 0, StaticVariablesRecord::switched_off};
    if (image.bytes == 0) return {0, 0, StaticVariablesRecord::no_variables};
    // The pages of such a mount are larger than the executable's.
    if (is_mount_of_huge_pages(settings.heap_dir)) return {0, 0, StaticVariablesRecord::huge_pages};
    return {image.identity, image.bytes, StaticVariablesRecord::shareable};
}

StaticVariables::StaticVariables(ProgramImage image, std::span<const PeRecord> records, int my_pe)
    : image_(std::move(image)), records_(records), my_pe_(my_pe), shares_process_(pes_with_shared_process(records)) {
    const StaticVariablesRecord& mine = records[static_cast<std::size_t>(my_pe)].statics;
    for (std::size_t pe = 0; pe < records.size(); ++pe) {
        const StaticVariablesRecord& other = records[pe].statics;
        max_bytes_ = std::max(max_bytes_, other.bytes);
        const bool same = other.identity == mine.identity && other.bytes == mine.bytes &&
                          reason_not_symmetric(static_cast<int>(pe)).empty();
        if (!same && first_differing_pe_ < 0) first_differing_pe_ = static_cast<int>(pe);
    }
}

Status StaticVariables::share(HostMemory& memory, int local_pe, std::uint64_t offset) {
    offset_ = offset;
    if (!reason_not_symmetric().empty()) return {};
    const npushmem_memory slice = memory.describe_slice(local_pe, offset + max_bytes_);
    auto made = SymmetricGlobals::share(image_, {slice.fd, slice.fd_offset + offset,
                                                 [&memory, local_pe, offset](std::uint64_t at, std::uint64_t bytes) {
                                                     return memory.commit(local_pe, offset + at, bytes);
                                                 }});
    if (!made.ok()) return made.status();
    data_ = std::move(made).value();
    return {};
}

std::string StaticVariables::reason_not_symmetric() const { return reason_not_symmetric(my_pe_); }

std::string StaticVariables::reason_not_symmetric(int pe) const {
    const auto at = static_cast<std::size_t>(pe);
    switch (records_[at].statics.state) {
        case StaticVariablesRecord::switched_off: return "NPUSHMEM_STATIC_DATA is 0";
        case StaticVariablesRecord::no_variables: return "the executable has none";
        case StaticVariablesRecord::huge_pages: return "NPUSHMEM_HEAP_DIR is a mount of huge pages";
        case StaticVariablesRecord::other_world: return "only the default world has the process's variables";
        case StaticVariablesRecord::shareable: break;
    }
    return shares_process_[at] ? "it is a thread of a process that has several PEs" : "";
}

Status StaticVariables::check(const char* what, const void* object, std::uint64_t bytes, int pe) const {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object) - image_.begin;
    if (!image_.contains(offset, bytes))
        return {Code::range, fmt::format("{} bytes at {} {} reach beyond the executable's variables, which end {} "
                                         "bytes after it",
                                         bytes, what, object, image_.bytes - offset)};
    if (pe == my_pe_ || same_on_all_pes()) return {};
    const int other = pe < 0 ? first_differing_pe_ : pe;
    const PeRecord& theirs = records_[static_cast<std::size_t>(other)];
    const PeRecord& mine = records_[static_cast<std::size_t>(my_pe_)];
    if (const std::string why = reason_not_symmetric(other); !why.empty())
        return {Code::not_symmetric,
                fmt::format("{} {} is a global or static variable, and those of PE {} are not symmetric: {}", what,
                            object, other, why)};
    if (theirs.statics.identity == mine.statics.identity) return {};
    return {Code::not_symmetric,
            fmt::format("{} {} is a global or static variable, and PE {} runs another executable (build {:016x}, here "
                        "{:016x}), which has it elsewhere or not at all; memory from npushmem_malloc is symmetric "
                        "between different executables",
                        what, object, other, theirs.statics.identity, mine.statics.identity)};
}

std::string StaticVariables::describe() const {
    if (const std::string why = reason_not_symmetric(); !why.empty()) return fmt::format("not symmetric: {}", why);
    std::string here = fmt::format("{} of the executable are symmetric", format_size(image_.bytes));
    if (first_differing_pe_ < 0) return here;
    const std::string why = reason_not_symmetric(first_differing_pe_);
    return fmt::format("{}, but not with PE {}: {}", here, first_differing_pe_,
                       why.empty() ? "another executable" : why);
}

}  // namespace npushmem
