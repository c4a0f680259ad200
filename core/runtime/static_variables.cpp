// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/static_variables.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/parse.hpp"
#include "core/runtime/pe_table.hpp"

namespace npushmem {

StaticVariablesRecord StaticVariables::record_of(const Settings& settings, const ProgramImage& image) {
    if (!settings.static_data) return {0, 0, StaticVariablesRecord::switched_off};
    if (image.bytes == 0) return {0, 0, StaticVariablesRecord::no_variables};
    // The pages of such a mount are larger than the executable's.
    if (is_mount_of_huge_pages(settings.heap_dir)) return {0, 0, StaticVariablesRecord::huge_pages};
    return {image.identity, image.bytes, StaticVariablesRecord::shareable};
}

StaticVariables::StaticVariables(ProgramImage image, const PeTable& pes, int my_pe)
    : image_(std::move(image)), pes_(&pes), my_pe_(my_pe) {
    const StaticVariablesRecord& mine = pes.traits(my_pe).statics;
    for (int pe = 0; pe < pes.npes(); ++pe) {
        const StaticVariablesRecord& other = pes.traits(pe).statics;
        max_bytes_ = std::max(max_bytes_, other.bytes);
        const bool same =
            other.identity == mine.identity && other.bytes == mine.bytes && reason_not_symmetric(pe).empty();
        if (!same && first_differing_pe_ < 0) first_differing_pe_ = pe;
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
    const PeTable::Traits& traits = pes_->traits(pe);
    switch (traits.statics.state) {
        case StaticVariablesRecord::switched_off: return "NPUSHMEM_STATIC_DATA is 0";
        case StaticVariablesRecord::no_variables: return "the executable has none";
        case StaticVariablesRecord::huge_pages: return "NPUSHMEM_HEAP_DIR is a mount of huge pages";
        case StaticVariablesRecord::other_world: return "only the default world has the process's variables";
        case StaticVariablesRecord::shareable: break;
    }
    return traits.shares_process ? "it is a thread of a process that has several PEs" : "";
}

Status StaticVariables::check(const char* what, const void* object, std::uint64_t bytes, int pe) const {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object) - image_.begin;
    if (!image_.contains(offset, bytes))
        return {Code::range, fmt::format("{} bytes at {} {} reach beyond the executable's variables, which end {} "
                                         "bytes after it",
                                         bytes, what, object, image_.bytes - offset)};
    if (pe == my_pe_ || same_on_all_pes()) return {};
    const int other = pe < 0 ? first_differing_pe_ : pe;
    const StaticVariablesRecord& theirs = pes_->traits(other).statics;
    const StaticVariablesRecord& mine = pes_->traits(my_pe_).statics;
    if (const std::string why = reason_not_symmetric(other); !why.empty())
        return {Code::not_symmetric,
                fmt::format("{} {} is a global or static variable, and those of PE {} are not symmetric: {}", what,
                            object, other, why)};
    if (theirs.identity == mine.identity) return {};
    return {Code::not_symmetric,
            fmt::format("{} {} is a global or static variable, and PE {} runs another executable (build {:016x}, here "
                        "{:016x}), which has it elsewhere or not at all; memory from npushmem_malloc is symmetric "
                        "between different executables",
                        what, object, other, theirs.identity, mine.identity)};
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
