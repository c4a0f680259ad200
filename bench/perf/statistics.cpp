#include "bench/perf/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/perf/moe/report_text.hpp"

namespace npushmem::perf {

namespace {

double at_share(const std::vector<double>& sorted, double share) {
    const double position = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(position));
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
}

}  // namespace

Spread spread_of(std::vector<double> samples) {
    if (samples.empty()) return {};
    std::ranges::sort(samples);
    return {at_share(samples, 0.5), at_share(samples, 0.1), at_share(samples, 0.9)};
}

namespace {

constexpr int left = 170;
constexpr int width = 480;  // of the longest line
constexpr int step = 30;

std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == '&')
            result += "&amp;";
        else if (c == '<')
            result += "&lt;";
        else
            result += c;
    }
    return result;
}

std::string text_at(int x, int y, const char* anchor, const std::string& text) {
    return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

std::string bar_at(int y, const Bar& bar, double scale) {
    const Spread& s = bar.seconds;
    return text_at(left - 8, y + 15, "end", bar.label) +
           fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"20\" fill=\"#4477aa\"/>\n", left, y,
                       s.median * scale) +
           fmt::format("<line x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\" stroke=\"#222\"/>\n",
                       left + s.p10 * scale, y + 10, left + s.p90 * scale, y + 10) +
           text_at(left + width + 10, y + 15, "start", time_text(s.median));
}

}  // namespace

std::string bars_svg(const std::string& title, const std::vector<Bar>& bars) {
    double longest = 1e-12;
    for (const Bar& bar : bars) longest = std::max(longest, bar.seconds.p90);
    std::string body = text_at(8, 20, "start", title);
    int y = 36;
    for (const Bar& bar : bars) {
        if (bar.seconds.median == 0) continue;
        body += bar_at(y, bar, width / longest);
        y += step;
    }
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" "
        "font-size=\"13\">\n{}</svg>\n",
        left + width + 110, y + 8, body);
}

}  // namespace npushmem::perf
