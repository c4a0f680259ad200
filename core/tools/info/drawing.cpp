// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "topology/policy/assignment.hpp"
#include "topology/report/describe.hpp"

namespace npushmem::info {

namespace {

using topology::DistanceClass;

constexpr double margin = 20;
constexpr double page_width = svg::a4_landscape.width - 2 * margin;
constexpr double rails_room = 50;  // between the NICs of the first host and those of the others
constexpr double line_height = 14;

// What a shape or a line means: its style, and its text in the legend. Lines have no fill.
struct Symbol {
    std::string_view fill;
    std::string_view stroke;
    double width = 1;            // of a line
    std::string_view dash = {};  // of a line
    std::string meaning = {};
};

const Symbol numa_box{.fill = "#f2f4f7", .stroke = "#9aa7b8", .meaning = "NUMA node"};
const Symbol switch_box{
    .fill = "#e3e9f1", .stroke = "#9aa7b8", .meaning = "PCIe bridge, switch or device, with its address"};
const Symbol host_box{.fill = "#fbf7ee", .stroke = "#b8a98a", .meaning = "another host, with the PEs of each NIC port"};
const Symbol used_npu{.fill = "#d9f0dd", .stroke = "#2b6e3c", .meaning = "NPU with its PEs and its place"};
const Symbol idle_npu{.fill = "#fafafa", .stroke = "#bbb", .meaning = "NPU without a PE"};
const Symbol nic_port{.fill = "#fff4d6", .stroke = "#b58900", .meaning = "NIC port, with its rate"};
const Symbol port_down{.fill = "#f3d4d4", .stroke = "#b2182b", .meaning = "NIC port that is down"};
const Symbol rail_line{
    .fill = {}, .stroke = "#777", .width = 1.5, .dash = "2,3", .meaning = "rail: the same port of two hosts"};

// From green to red, in colours that colour-blind readers can distinguish.
constexpr std::array<std::string_view, topology::distance_class_count> class_colours{"#1a7f37", "#5aa9e6", "#1f4fa3",
                                                                                     "#e08214", "#b2182b"};

// The line from a PE to its first or a further NIC.
Symbol nic_line(DistanceClass distance, bool first) {
    return {.fill = {},
            .stroke = class_colours.at(static_cast<std::size_t>(distance)),
            .width = first ? 3 : 1.5,
            .dash = first ? "" : "5,4",
            .meaning = fmt::format("{} NIC of a PE, {}: {}", first ? "first" : "further", name_of(distance),
                                   path_of(distance))};
}

class Drawing {
public:
    explicit Drawing(const JobView& job)
        : job_(job), svg_(title()), host_(lay_out(device_trees(job), {margin, margin + 20}, page_width)) {}

    std::string run() {
        const TextStyle style{15, "#222", "start", true};
        svg_.text({margin, margin + 8}, title(), style);
        right_ = std::max(margin + svg::text_width(title(), style), margin + host_.width - host_.cell.gap);
        boxes();
        lines();
        cells();
        double y = host_.bottom;
        if (job_.hosts.size() > 1) y = other_hosts(y);
        y = legend(y + 20);
        y = map(y + 10);
        return svg_.document(right_ + margin, y + margin, svg::a4_landscape);
    }

private:
    std::string title() const {
        const auto& machine = job_.machine;
        return fmt::format("{}: {} PEs on {} NIC ports by policy {}{}",
                           machine.host_name.empty() ? machine.source : "host " + machine.host_name, job_.places.size(),
                           job_.rails.size(), job_.hosts.front().method,
                           job_.hosts.size() > 1 ? fmt::format(", one of {} hosts", job_.hosts.size()) : "");
    }

    // Everything drawn passes here or through line(), so the legend is complete.
    void box(const Rect& at, const Symbol& symbol, std::string_view tip, double corner = 4) {
        svg_.rect(at, symbol.fill, symbol.stroke, tip, corner);
        use(symbol);
    }

    void line(Point from, Point to, const Symbol& symbol, std::string_view tip) {
        svg_.curve(from, to, symbol.stroke, symbol.width, symbol.dash, tip);
        use(symbol);
    }

    void use(const Symbol& symbol) {
        if (std::ranges::find(used_, symbol.meaning, &Symbol::meaning) == used_.end()) used_.push_back(symbol);
    }

    void fitted(Point at, const std::vector<std::string>& variants, double width, const TextStyle& style) {
        const auto fitting = fit_text(variants, width, style);
        svg_.text(at, fitting.text, fitting.style);
    }

    // Rows of samples with their meanings. Returns the bottom.
    double legend(double y) {
        constexpr TextStyle style{10, "#444", "start"};
        constexpr double sample = 26;
        const double end = std::max(right_, margin + page_width);
        double x = margin;
        for (const Symbol& symbol : used_) {
            const double width = sample + 6 + svg::text_width(symbol.meaning, style);
            if (x > margin && x + width > end) {
                x = margin;
                y += 18;
            }
            if (symbol.fill.empty())
                svg_.line({{x, y - 4}, {x + sample, y - 4}}, symbol.stroke, symbol.width, {}, symbol.dash);
            else
                svg_.rect({x, y - 10, sample, 12}, symbol.fill, symbol.stroke, {}, 3);
            svg_.text({x + sample + 6, y}, symbol.meaning, style);
            right_ = std::max(right_, x + width);
            x += width + 20;
        }
        return y + 18;
    }

    void boxes() {
        for (const auto& group : host_.boxes) {
            box(group.at, group.label.starts_with("NUMA") ? numa_box : switch_box, group.label, 6);
            fitted({group.at.x + 6, group.at.y + 14}, label_variants(group.label), group.at.width - 12,
                   {11, "#445", "start"});
        }
    }

    void cells() {
        for (const auto& npu : host_.npus) npu_cell(npu);
        for (const auto& [rail, at] : host_.nics) nic_cell(job_.rails[rail], at, {});
    }

    static std::vector<std::string> pes_text(const std::vector<std::uint32_t>& pes) {
        return {fmt::format("PE {}", topology::pe_ranges(pes)), fmt::format("{} PEs", pes.size())};
    }

    void npu_cell(const NpuCell& npu) {
        const double width = npu.at.width - 6;
        const double x = npu.at.top().x;
        std::vector<std::uint32_t> pes;
        for (const std::size_t place : npu.leaf.places) pes.push_back(job_.hosts.front().pes[place].pe);
        const auto users = pes.empty() ? std::vector<std::string>{"idle"} : pes_text(pes);
        box(npu.at, pes.empty() ? idle_npu : used_npu, fmt::format("{}: {}", npu.leaf.label, users.front()));
        fitted({x, npu.at.y + 19}, users, width, {13, pes.empty() ? "#999" : "#143d1f", "middle", !pes.empty()});
        fitted({x, npu.at.y + 36}, label_variants(npu.leaf.label), width, {9, "#555"});
    }

    // `users`: of a port of another host; empty: the port's rate is shown.
    void nic_cell(const topology::Rail& rail, const Rect& at, const std::vector<std::uint32_t>& users) {
        const bool down = rail.state == topology::PortState::down;
        std::vector<std::string> lower{topology::rate_text(rail.bits_per_second)};
        if (down)
            lower = {"down"};
        else if (!users.empty())
            lower = pes_text(users);
        else if (lower.front().empty())
            lower = {"rate unknown", "no rate"};
        box(at, down ? port_down : nic_port, fmt::format("{}: {}", name_of(rail), lower.front()));
        fitted({at.top().x, at.y + 19}, {name_of(rail)}, at.width - 4, {12, "#4d3b00", "middle", true});
        fitted({at.top().x, at.y + 36}, lower, at.width - 6, {9, down ? "#b2182b" : "#555"});
    }

    // Returns the position of a NIC of the assignment; null if it is not drawn.
    const Rect* rect_of(const topology::NicChoice& nic) const {
        for (const auto& [rail, at] : host_.nics) {
            if (job_.rails[rail].nic == nic.nic && job_.rails[rail].port == nic.port) return &at;
        }
        return nullptr;
    }

    // Draws first NICs last, so that they are on top. PEs of one cell that use the same NIC share a line.
    void lines() {
        for (const bool first : {false, true}) {
            for (const auto& npu : host_.npus) lines_of(npu, first);
        }
    }

    void lines_of(const NpuCell& npu, bool first) {
        std::vector<const Rect*> drawn;
        for (const std::size_t place : npu.leaf.places) {
            const auto& pe = job_.hosts.front().pes[place];
            for (const auto& nic : pe.nics) {
                const Rect* at = rect_of(nic);
                if ((&nic == pe.nics.data()) != first || at == nullptr) continue;
                if (std::find(drawn.begin(), drawn.end(), at) != drawn.end()) continue;
                drawn.push_back(at);
                line(npu.at.bottom(), at->top(), nic_line(nic.distance, first),
                     fmt::format("PE {}: {}", pe.pe, pe.reason));
            }
        }
    }

    // The NICs of the other hosts are below those of the first host, rail by rail. Returns the bottom.
    double other_hosts(double y) {
        const double row = y + rails_room;
        const Rect host{margin, row - 8, host_.width - host_.cell.gap, CellSize::height + 32};
        const auto& other = job_.hosts[1];
        const auto more = job_.hosts.size() - 2;
        const auto label = fmt::format("host 1, PEs {} to {}{}", other.pes.front().pe, other.pes.back().pe,
                                       more == 0 ? "" : fmt::format(" (and {} more hosts)", more));
        box(host, host_box, label, 6);
        for (const auto& [rail, at] : host_.nics) {
            const bool down = job_.rails[rail].state == topology::PortState::down;
            const auto number = fmt::format("rail {}", job_.rail_numbers[rail]);
            if (!down) line(at.bottom(), {at.top().x, row}, rail_line, number);
            svg_.text({at.top().x + 4, (y + host.y) / 2 + 4}, number, {9, "#555", "start"});
        }
        svg_.text({host.x + 6, host.y + host.height - 8}, label, {11, "#445", "start"});
        for (const auto& [rail, at] : host_.nics)
            nic_cell(job_.rails[rail], {at.x, row, at.width, at.height}, users_of(other, rail));
        return host.y + host.height;
    }

    std::vector<std::uint32_t> users_of(const topology::Assignment& host, std::size_t rail) const {
        std::vector<std::uint32_t> pes;
        for (const auto& pe : host.pes) {
            for (const auto& nic : pe.nics) {
                if (nic.nic == job_.rails[rail].nic && nic.port == job_.rails[rail].port) pes.push_back(pe.pe);
            }
        }
        return pes;
    }

    double map(double y) {
        std::istringstream text(describe_map(job_));
        std::vector<std::string> shown;
        for (std::string each; std::getline(text, each);) shown.push_back(each);
        constexpr std::size_t max_lines = 24;
        if (shown.size() > max_lines) {
            const auto left_out = shown.size() - (max_lines - 1);
            shown.resize(max_lines - 1);
            shown.push_back(fmt::format("{} more lines: npushmem-info -t", left_out));
        }
        for (std::size_t i = 0; i < shown.size(); ++i) {
            const TextStyle style{11, "#222", "start", i == 0, true};
            // Browsers keep only non-breaking blanks.
            std::string kept;
            for (const char c : shown[i]) kept += c == ' ' ? "\u00a0" : std::string(1, c);
            svg_.text({margin, y}, kept, style);
            right_ = std::max(right_, margin + svg::text_width(kept, style));
            y += line_height;
        }
        return y - line_height;
    }

    const JobView& job_;
    Svg svg_;
    HostLayoutOnPage host_;
    std::vector<Symbol> used_;  // what has been drawn, for the legend
    double right_ = 0;          // of what has been drawn
};

}  // namespace

std::string draw(const JobView& job) { return Drawing(job).run(); }

}  // namespace npushmem::info
