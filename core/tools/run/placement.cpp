// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace npushmem::run {

int emulated_host_of(int pe, int npes, int nodes, MapBy map_by) {
    if (map_by == MapBy::round_robin) return pe % nodes;
    const int small = npes / nodes;
    const int large_hosts = npes % nodes;
    const int in_large = large_hosts * (small + 1);
    return pe < in_large ? pe / (small + 1) : large_hosts + (pe - in_large) / small;
}

HostPes pes_of_host(int host, int hosts, int npes, MapBy map_by) {
    const int each = npes / hosts;
    const int larger = npes % hosts;
    const int count = each + (host < larger ? 1 : 0);
    if (map_by == MapBy::round_robin) return {{host, hosts}, count};
    return {{host * each + std::min(host, larger), 1}, count};
}

namespace {

CpuList one_of(const std::vector<CpuList>& units, std::size_t pe) { return units[pe % units.size()]; }

CpuList share_of(const std::vector<CpuList>& units, std::size_t pe, std::size_t npes) {
    CpuList out;
    const std::size_t begin = units.size() * pe / npes;
    const std::size_t end = units.size() * (pe + 1) / npes;
    for (std::size_t unit = begin; unit < end; ++unit) out.insert(out.end(), units[unit].begin(), units[unit].end());
    return out;
}

}  // namespace

std::vector<CpuList> binding_plan(Bind bind, const std::vector<CpuList>& units, int npes) {
    const auto count = static_cast<std::size_t>(npes);
    std::vector<CpuList> out(count);
    const bool crowded = count > units.size();
    if (bind == Bind::none || (bind == Bind::automatic && crowded)) return out;
    const bool share = (bind == Bind::share || bind == Bind::automatic) && !crowded;
    for (std::size_t pe = 0; pe < count; ++pe) out[pe] = share ? share_of(units, pe, count) : one_of(units, pe);
    return out;
}

std::string format_cpus(const CpuList& cpus) {
    CpuList sorted = cpus;
    std::sort(sorted.begin(), sorted.end());
    std::string out;
    for (std::size_t first = 0; first < sorted.size();) {
        std::size_t last = first;
        while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
        out += out.empty() ? "" : ",";
        out += first == last ? fmt::format("{}", sorted[first]) : fmt::format("{}-{}", sorted[first], sorted[last]);
        first = last + 1;
    }
    return out;
}

namespace {

constexpr std::size_t max_hosts = 65536;

using Names = std::vector<std::string>;

Status malformed(std::string_view part) {
    return {Code::argument, fmt::format("'{}' is not a list of hosts; expected, for instance, a,b[1-3,07]", part)};
}

// Splits at commas, except at those within brackets.
Names split_outside_brackets(std::string_view text) {
    Names parts(1);
    int depth = 0;
    for (const char letter : text) {
        depth += letter == '[' ? 1 : letter == ']' ? -1 : 0;
        if (letter == ',' && depth == 0)
            parts.emplace_back();
        else
            parts.back() += letter;
    }
    return parts;
}

bool parse_number(std::string_view text, unsigned long& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

// "1-3,07": 1, 2, 3, 07.
Result<Names> expand_ranges(std::string_view text) {
    Names out;
    for (const std::string& range : split_outside_brackets(text)) {
        const auto dash = range.find('-');
        const std::string first_text = range.substr(0, dash);
        unsigned long first = 0;
        if (!parse_number(first_text, first)) return malformed(text);
        unsigned long last = first;
        if (dash != std::string::npos && !parse_number(std::string_view(range).substr(dash + 1), last))
            return malformed(text);
        if (last < first || last - first >= max_hosts) return malformed(text);
        for (unsigned long number = first; number <= last; ++number)
            out.push_back(fmt::format("{:0{}}", number, first_text.size()));
    }
    return out;
}

// One part of the list, with any number of brackets.
Result<Names> expand_part(std::string_view part) {
    const auto open = part.find('[');
    if (open == std::string_view::npos)
        return part.empty() || part.find(']') != std::string_view::npos ? Result<Names>(malformed(part))
                                                                        : Names{std::string(part)};
    const auto close = part.find(']', open);
    if (close == std::string_view::npos) return malformed(part);
    auto numbers = expand_ranges(part.substr(open + 1, close - open - 1));
    if (!numbers.ok()) return numbers;
    const std::string_view rest = part.substr(close + 1);
    auto ends = rest.empty() ? Result<Names>(Names{""}) : expand_part(rest);
    if (!ends.ok()) return ends;
    Names out;
    for (const std::string& number : numbers.value())
        for (const std::string& end : ends.value())
            out.push_back(fmt::format("{}{}{}", part.substr(0, open), number, end));
    return out;
}

Names each_once(const Names& names) {
    Names out;
    for (const std::string& name : names)
        if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    return out;
}

Names words(const std::string& text) {
    std::istringstream stream(text);
    Names out;
    for (std::string word; stream >> word;) out.push_back(word);
    return out;
}

}  // namespace

Result<std::vector<std::string>> expand_host_list(std::string_view text) {
    Names out;
    for (const std::string& part : split_outside_brackets(text)) {
        auto names = expand_part(part);
        if (!names.ok()) return names;
        out.insert(out.end(), names.value().begin(), names.value().end());
        if (out.size() > max_hosts) return malformed(text);
    }
    return out;
}

Result<std::optional<Allocation>> find_allocation(const Environment& environment, const FileReader& read) {
    if (const auto list = environment.get("SLURM_JOB_NODELIST"); list && !list->empty()) {
        auto hosts = expand_host_list(*list);
        if (!hosts.ok()) return hosts.status().within("SLURM_JOB_NODELIST");
        return std::optional(Allocation{each_once(hosts.value()),
                                        {"srun", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist"},
                                        "SLURM_JOB_NODELIST"});
    }
    if (const auto path = environment.get("PBS_NODEFILE"); path && !path->empty()) {
        const auto text = read(*path);
        if (!text) return Status{Code::argument, fmt::format("PBS_NODEFILE='{}' cannot be read", *path)};
        return std::optional(Allocation{each_once(words(*text)), {}, "PBS_NODEFILE"});
    }
    if (const auto list = environment.get("LSB_HOSTS"); list && !list->empty())
        return std::optional(Allocation{each_once(words(*list)), {}, "LSB_HOSTS"});
    return std::optional<Allocation>{};
}

Status use_allocation(Options& options, const Environment& environment, const FileReader& read) {
    if (options.local || !options.hosts.empty() || options.nodes > 0) return {};
    auto found = find_allocation(environment, read);
    if (!found.ok()) return found.status().within("the hosts of this allocation (--local runs on this host only)");
    if (!found.value() || found.value()->hosts.size() < 2 || options.npes < 2) return {};
    Allocation& allocation = *found.value();
    const auto usable = std::min(allocation.hosts.size(), static_cast<std::size_t>(options.npes));
    options.hosts.assign(allocation.hosts.begin(), allocation.hosts.begin() + static_cast<std::ptrdiff_t>(usable));
    if (!options.rsh_given && !allocation.rsh.empty()) options.rsh = allocation.rsh;
    return {};
}

}  // namespace npushmem::run
