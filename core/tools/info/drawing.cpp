// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "topology/policy/assignment.hpp"
#include "topology/report/describe.hpp"

namespace npushmem::info {

namespace {

constexpr double header = 20;       // above the content of a box, for its label
constexpr double lines_room = 120;  // between the two rows

int depth_of(const DeviceTree& tree) {
    int deepest = 0;
    for (const auto& group : tree.groups) deepest = std::max(deepest, 1 + depth_of(group));
    return deepest;
}

class HostLayouter {
public:
    HostLayouter(Point origin, int depth)
        : top_(origin.y), npu_row_(origin.y + header * (depth + 1)), nic_row_(npu_row_ + cell_height + lines_room) {
        out_.bottom = nic_row_ + cell_height + gap * (depth + 1);
    }

    // Returns the x behind the tree.
    double place(const DeviceTree& tree, double x, int depth) {
        const std::size_t box = out_.boxes.size();
        out_.boxes.push_back({});
        double inside = x + gap;
        inside += place_leaves(tree, inside);
        for (const auto& group : tree.groups) inside = place(group, inside, depth + 1) + gap;
        const double right = std::max(inside, x + gap + min_width(tree));
        const double y = top_ + header * depth;
        out_.boxes[box] = {{x, y, right - x, out_.bottom - gap * depth - y}, tree.label};
        return right;
    }

    HostLayoutOnPage take(double width) {
        out_.width = width;
        return std::move(out_);
    }

private:
    // The label must fit: about 6 pixels for a letter of its size.
    static double min_width(const DeviceTree& tree) { return 6.0 * static_cast<double>(tree.label.size()); }

    double place_leaves(const DeviceTree& tree, double x) {
        const double width = columns(std::max(tree.npus.size(), tree.nics.size()));
        const double first_npu = x + (width - columns(tree.npus.size())) / 2;
        const double first_nic = x + (width - columns(tree.nics.size())) / 2;
        for (std::size_t i = 0; i < tree.npus.size(); ++i)
            out_.npus.push_back({{first_npu + columns(i), npu_row_, cell_width, cell_height}, tree.npus[i]});
        for (std::size_t i = 0; i < tree.nics.size(); ++i)
            out_.nics[tree.nics[i].rail] = {first_nic + columns(i), nic_row_, cell_width, cell_height};
        return width;
    }

    static double columns(std::size_t count) { return (cell_width + gap) * static_cast<double>(count); }

    HostLayoutOnPage out_;
    double top_;
    double npu_row_;
    double nic_row_;
};

}  // namespace

HostLayoutOnPage lay_out(const std::vector<DeviceTree>& trees, Point origin) {
    int depth = 0;
    for (const auto& tree : trees) depth = std::max(depth, depth_of(tree));
    HostLayouter layouter(origin, depth);
    double x = origin.x;
    for (const auto& tree : trees) x = layouter.place(tree, x, 0) + gap;
    return layouter.take(x - origin.x);
}

namespace {

using topology::DistanceClass;

constexpr double margin = 20;
constexpr double rails_room = 70;  // between the NICs of the first host and those of the others
constexpr double line_height = 16;

// From green to red, in colours that colour-blind readers can distinguish.
constexpr std::array<std::string_view, topology::distance_class_count> class_colours{"#1a7f37", "#5aa9e6", "#1f4fa3",
                                                                                     "#e08214", "#b2182b"};

std::string_view colour_of(DistanceClass distance) { return class_colours.at(static_cast<std::size_t>(distance)); }

std::string_view fill_of(topology::PortState state) {
    return state == topology::PortState::down ? "#f3d4d4" : "#fff4d6";
}

class Drawing {
public:
    explicit Drawing(const JobView& job)
        : job_(job), svg_(title()), host_(lay_out(device_trees(job), {margin, margin + 40})) {}

    std::string run() {
        double y = host_.bottom;
        svg_.text({margin, margin + 8}, title(), {15, "#222", "start", true});
        right_ = margin + 9.0 * static_cast<double>(title().size());
        legend(margin + 28);
        boxes();
        lines();
        cells();
        if (job_.hosts.size() > 1) y = other_hosts(y);
        y = map(y + 30);
        return svg_.document(std::max(right_, host_.width + margin) + margin, y + margin);
    }

private:
    std::string title() const {
        const auto& machine = job_.machine;
        return fmt::format("{}: {} PEs on {} NIC ports by policy {}{}",
                           machine.host_name.empty() ? machine.source : "host " + machine.host_name, job_.places.size(),
                           job_.rails.size(), job_.hosts.front().method,
                           job_.hosts.size() > 1 ? fmt::format(", one of {} hosts", job_.hosts.size()) : "");
    }

    void legend(double y) {
        double x = margin;
        for (const DistanceClass distance : classes_in_use()) {
            svg_.rect({x, y - 7, 22, 4}, colour_of(distance), "none", {}, 0);
            const auto text = fmt::format("{} {}", name_of(distance), path_of(distance));
            svg_.text({x + 28, y}, text, {10, "#444", "start"});
            x += 44 + 5.4 * static_cast<double>(text.size());
        }
        right_ = std::max(right_, x);
    }

    std::set<DistanceClass> classes_in_use() const {
        std::set<DistanceClass> classes;
        for (const auto& pe : job_.hosts.front().pes) {
            for (const auto& nic : pe.nics) classes.insert(nic.distance);
        }
        return classes;
    }

    void boxes() {
        for (std::size_t i = 0; i < host_.boxes.size(); ++i) {
            const auto& box = host_.boxes[i];
            svg_.rect(box.at, box.label.starts_with("NUMA") ? "#f2f4f7" : "#e3e9f1", "#9aa7b8", box.label, 6);
            svg_.text({box.at.x + 8, box.at.y + 14}, box.label, {11, "#445", "start"});
        }
    }

    void cells() {
        for (const auto& npu : host_.npus) npu_cell(npu);
        for (const auto& [rail, at] : host_.nics) nic_cell(job_.rails[rail], at, "");
    }

    std::string pes_at(const NpuLeaf& leaf) const {
        std::vector<std::uint32_t> pes;
        for (const std::size_t place : leaf.places) pes.push_back(job_.hosts.front().pes[place].pe);
        return pes.empty() ? "idle" : fmt::format("PE {}", topology::pe_ranges(pes));
    }

    void npu_cell(const NpuCell& npu) {
        const bool idle = npu.leaf.places.empty();
        svg_.rect(npu.at, idle ? "#fafafa" : "#d9f0dd", idle ? "#bbb" : "#2b6e3c", npu.leaf.label);
        svg_.text({npu.at.top().x, npu.at.y + 19}, pes_at(npu.leaf), {13, idle ? "#999" : "#143d1f", "middle", !idle});
        svg_.text({npu.at.top().x, npu.at.y + 36}, npu.leaf.label, {9, "#555"});
    }

    void nic_cell(const topology::Rail& rail, const Rect& at, const std::string& users) {
        const bool down = rail.state == topology::PortState::down;
        svg_.rect(at, fill_of(rail.state), down ? "#b2182b" : "#b58900", name_of(rail));
        svg_.text({at.top().x, at.y + 19}, name_of(rail), {12, "#4d3b00", "middle", true});
        const auto rate = topology::rate_text(rail.bits_per_second);
        const std::string state = down ? "down" : rate.empty() ? "rate unknown" : rate;
        svg_.text({at.top().x, at.y + 36}, users.empty() ? state : users, {9, down ? "#b2182b" : "#555"});
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
                svg_.curve(npu.at.bottom(), at->top(), colour_of(nic.distance), first ? 3 : 1.5, first ? "" : "5,4",
                           fmt::format("PE {}: {}", pe.pe, pe.reason));
            }
        }
    }

    // The NICs of the other hosts are below those of the first host, rail by rail.
    double other_hosts(double y) {
        const double row = y + rails_room;
        const Rect box{margin, row - 24, host_.width - gap, cell_height + 34};
        const auto& other = job_.hosts[1];
        for (const auto& [rail, at] : host_.nics) {
            const bool down = job_.rails[rail].state == topology::PortState::down;
            if (!down) svg_.curve(at.bottom(), {at.top().x, row}, "#777", 1.5, "2,3", "one rail");
            svg_.text({at.top().x + 4, (y + box.y) / 2 + 4}, fmt::format("rail {}", job_.rail_numbers[rail]),
                      {9, "#777", "start"});
        }
        svg_.rect(box, "#f2f4f7", "#9aa7b8", "", 6);
        const auto more = job_.hosts.size() - 2;
        svg_.text({box.x + 8, box.y + 15},
                  fmt::format("host 1, PEs {} to {}{}", other.pes.front().pe, other.pes.back().pe,
                              more == 0 ? "" : fmt::format(" (and {} more hosts)", more)),
                  {11, "#445", "start"});
        for (const auto& [rail, at] : host_.nics)
            nic_cell(job_.rails[rail], {at.x, row, at.width, at.height}, users_of(other, rail));
        return box.y + box.height;
    }

    std::string users_of(const topology::Assignment& host, std::size_t rail) const {
        std::vector<std::uint32_t> pes;
        for (const auto& pe : host.pes) {
            for (const auto& nic : pe.nics) {
                if (nic.nic == job_.rails[rail].nic && nic.port == job_.rails[rail].port) pes.push_back(pe.pe);
            }
        }
        return pes.empty() ? std::string() : fmt::format("PE {}", topology::pe_ranges(pes));
    }

    double map(double y) {
        std::istringstream text(describe_map(job_));
        constexpr std::size_t max_lines = 24;
        std::size_t count = 0;
        for (std::string line; std::getline(text, line) && count < max_lines; ++count) {
            // Browsers keep only non-breaking blanks.
            std::string shown;
            for (const char c : line) shown += c == ' ' ? "\u00a0" : std::string(1, c);
            svg_.text({margin, y}, shown, {12, "#222", "start", count == 0, true});
            right_ = std::max(right_, margin + 7.4 * static_cast<double>(line.size()));
            y += line_height;
        }
        return y;
    }

    const JobView& job_;
    Svg svg_;
    HostLayoutOnPage host_;
    double right_ = 0;  // of what has been drawn
};

}  // namespace

std::string draw(const JobView& job) { return Drawing(job).run(); }

}  // namespace npushmem::info
