#include "topology/reason.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace npushmem::topology {
namespace {

constexpr std::size_t max_pes_named = 4;

std::string_view where(const NicChoice& nic, const ReasonFacts& facts) {
    return facts.place_known ? path_of(nic.distance) : "at a place nobody knows, which counts as farthest";
}

std::string why_this_one(const NicChoice& nic, const ReasonFacts& facts) {
    if (!facts.decided_by.empty()) {
        return fmt::format("{}{}, {} ({})", facts.decided_by, name_of(nic), where(nic, facts), name_of(nic.distance));
    }
    if (facts.equally_near == 1) {
        return fmt::format("{} is the nearest, {} ({})", name_of(nic), where(nic, facts), name_of(nic.distance));
    }
    return fmt::format("{} is one of the {} nearest, {} ({})", name_of(nic), facts.equally_near, where(nic, facts),
                       name_of(nic.distance));
}

std::string others_text(std::uint32_t others) {
    return others == 1 ? "1 PE of another job" : fmt::format("{} PEs of other jobs", others);
}

std::string sharing(const NicChoice& nic) {
    if (nic.shared_with.empty() && nic.others == 0) return "not shared";
    if (nic.shared_with.empty()) return fmt::format("shared with {}", others_text(nic.others));
    const auto own = pes_text(nic.shared_with);
    if (nic.others == 0) return fmt::format("shared with {}", own);
    return fmt::format("shared with {}, and with {}", own, others_text(nic.others));
}

std::string besides(const std::vector<NicChoice>& nics) {
    if (nics.size() == 1) return {};
    std::string names;
    for (std::size_t i = 1; i < nics.size(); ++i) {
        names += fmt::format("{}{} ({})", i == 1 ? "" : ", ", name_of(nics[i]), name_of(nics[i].distance));
    }
    return fmt::format("; besides {}, because there are more NICs than PEs", names);
}

}  // namespace

std::string name_of(const NicChoice& nic) { return fmt::format("{}:{}", nic.nic, nic.port); }

std::string pes_text(const std::vector<std::uint32_t>& pes) {
    if (pes.size() == 1) return fmt::format("PE {}", pes.front());
    const std::size_t named = pes.size() > max_pes_named ? max_pes_named : pes.size() - 1;
    const std::vector<std::uint32_t> first(pes.begin(), pes.begin() + static_cast<std::ptrdiff_t>(named));
    if (pes.size() <= max_pes_named) return fmt::format("PEs {} and {}", fmt::join(first, ", "), pes.back());
    return fmt::format("PEs {} and {} more", fmt::join(first, ", "), pes.size() - named);
}

std::string reason_of(const std::vector<NicChoice>& nics, const ReasonFacts& facts) {
    const auto& first = nics.front();
    std::string reason = fmt::format("{}, {}{}", why_this_one(first, facts), sharing(first), besides(nics));
    if (!facts.nearer.empty()) reason += fmt::format("; {} would be nearer", facts.nearer);
    return reason;
}

}  // namespace npushmem::topology
