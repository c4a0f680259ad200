// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/collectives_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/parse.hpp"
#include "core/runtime/start_exchange.hpp"

namespace npushmem {

namespace {

// What a PE reports about its library. Plain bytes.
struct LibraryRecord {
    std::int32_t code = 0;  // of `open`
    char text[508] = {};    // the description, or why `open` failed
    coll::LibraryCapabilities capabilities;
};

LibraryRecord record_of(const Result<OwnedCollectives>& opened) {
    LibraryRecord record;
    const std::string text = opened.ok() ? opened.value().library->description() : opened.status().message();
    (void)text.copy(record.text, sizeof record.text - 1);
    record.code = static_cast<std::int32_t>(opened.status().code());
    if (opened.ok()) record.capabilities = coll::LibraryCapabilities::of(*opened.value().library);
    return record;
}

// Returns why the PEs cannot use the library together; empty: they can.
std::string why_rejected(const std::vector<LibraryRecord>& all) {
    for (std::size_t pe = 0; pe < all.size(); ++pe) {
        if (all[pe].code != 0) return fmt::format("PE {}: {}", pe, all[pe].text);
        if (std::strcmp(all[pe].text, all[0].text) != 0)
            return fmt::format("PE {} has {}, PE 0 has {}", pe, all[pe].text, all[0].text);
    }
    return {};
}

CollectivesChoice rejected(const Settings& settings, std::string_view why) {
    return {nullptr, fmt::format("npushmem (NPUSHMEM_COLL_LIBRARY={} is not used; {})", settings.coll_library, why)};
}

bool is_unusable_here(Code code) { return code == Code::unsupported || code == Code::state; }

}  // namespace

Result<CollectivesChoice> choose_collectives(const Settings& settings, Bootstrap& bootstrap,
                                             const std::function<Result<OwnedCollectives>()>& open,
                                             const barrier::Tuning& tuning, coll::CollectivesLibrary::LogLine log) {
    if (settings.coll_library.empty()) return CollectivesChoice{};
    if (settings.survives_deaths)
        return rejected(settings, "NPUSHMEM_ON_PEER_DEATH=survive: a library may wait for a dead PE for ever");
    auto opened = open();
    if (!opened.ok() && !is_unusable_here(opened.status().code()))
        return opened.status().within("NPUSHMEM_COLL_LIBRARY");
    auto all = gather(bootstrap, record_of(opened));
    if (!all.ok()) return all.status();
    if (const std::string why = why_rejected(all.value()); !why.empty()) return rejected(settings, why);
    coll::LibraryCapabilities agreed = all.value().front().capabilities;
    for (const LibraryRecord& record : all.value()) agreed.intersect(record.capabilities);
    auto [name, library] = std::move(opened).value();
    std::string text =
        fmt::format("{} (set by NPUSHMEM_COLL_LIBRARY; {}: {})", name, library->description(), agreed.describe());
    return CollectivesChoice{
        std::make_unique<coll::CollectivesLibrary>(name, std::move(library), agreed, tuning, std::move(log)),
        std::move(text)};
}

std::vector<std::string> unknown_libraries(const barrier::Tuning& tuning, std::vector<std::string> known) {
    known.emplace_back("npushmem");
    std::vector<std::string> sentences;
    for (const barrier::LibraryRule& rule : tuning.library_rules()) {
        if (std::ranges::find(known, rule.library) != known.end()) continue;
        const std::string near = nearest(rule.library, known);
        sentences.push_back(fmt::format(
            "{}, line {}: there is no library '{}' of collectives; npushmem serves the calls of this rule{}",
            tuning.name(), rule.line, rule.library, near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
    return sentences;
}

}  // namespace npushmem
