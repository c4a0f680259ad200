// SPDX-License-Identifier: BSD-3-Clause
#include "tests/stress/storm/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace npushmem::storm {

void Table::Cell::add(const Cell& other) {
    faults += other.faults;
    injected += other.injected;
    known += other.known;
    defects += other.defects;
    late += other.late;
    longest = std::max(longest, other.longest);
}

std::string Table::Cell::text() const {
    if (faults == 0) return "";
    return fmt::format("{}{}{}{}, {:.1f} s", faults, known > 0 ? fmt::format(" ({} known)", known) : "",
                       defects > 0 ? fmt::format(" (**{} new**)", defects) : "",
                       late > 0 ? fmt::format(" ({} late)", late) : "", longest);
}

void Table::add(const Fault& fault, const JobResult& result, Outcome outcome) {
    const bool injected = fault.kind->whole_job || !result.injected.empty();
    // Without a fault the time is that of the whole job.
    const double seconds =
        injected && !fault.kind->whole_job ? std::chrono::duration<double>(result.took).count() : 0.0;
    const Cell one{1,
                   injected ? 1 : 0,
                   outcome == Outcome::known ? 1 : 0,
                   outcome == Outcome::defect ? 1 : 0,
                   is_late(fault, result) ? 1 : 0,
                   seconds};
    cells_[{std::string(fault.kind->name), fault.transports->name}].add(one);
    launchers_[fault.launcher->name].add(one);
}

std::string Table::text() const {
    std::set<std::string> columns;
    for (const auto& [key, cell] : cells_) columns.insert(key.second);
    std::string out = "| fault |";
    std::string rule = "|---|";
    for (const auto& column : columns) out += fmt::format(" `{}` |", column), rule += "---|";
    out += " all |\n" + rule + "---|\n";
    Cell all;
    for (const auto& kind : kinds()) {
        Cell row;
        std::string line = fmt::format("| {} |", kind.name);
        for (const auto& column : columns) {
            const auto found = cells_.find({std::string(kind.name), column});
            line += fmt::format(" {} |", found == cells_.end() ? "" : found->second.text());
            if (found != cells_.end()) row.add(found->second);
        }
        if (row.faults > 0) out += fmt::format("{} {} |\n", line, row.text());
        all.add(row);
    }
    out +=
        "\n| launcher | jobs | faults that came | known defects | new defects | later than 5 s | longest end "
        "|\n|---|---|---|---|---|---|---|\n";
    for (const auto& [name, cell] : launchers_)
        out += fmt::format("| {} | {} | {} | {} | {} | {} | {:.1f} s |\n", name, cell.faults, cell.injected, cell.known,
                           cell.defects, cell.late, cell.longest);
    return out + fmt::format("| all | {} | {} | {} | {} | {} | {:.1f} s |\n", all.faults, all.injected, all.known,
                             all.defects, all.late, all.longest);
}

}  // namespace npushmem::storm
