#include "core/tools/run/record_frames.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace npushmem::run {
namespace {

constexpr char opening = '\x1e';
constexpr std::size_t longest_text = 3500;  // a frame is below PIPE_BUF, 4096

bool is_plain(char c) { return static_cast<unsigned char>(c) >= ' ' && c != '%'; }

std::string escaped(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) out += is_plain(c) ? std::string(1, c) : fmt::format("%{:02x}", c);
    return out;
}

std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned value = 0;
        const bool escape =
            text[i] == '%' && i + 2 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3;
        out += escape ? static_cast<char>(value) : text[i];
        if (escape) i += 2;
    }
    return out;
}

// How many bytes at the end of `text` could be the beginning of `mark`.
std::size_t begun(std::string_view text, std::string_view mark) {
    for (std::size_t bytes = std::min(text.size(), mark.size() - 1); bytes > 0; --bytes)
        if (text.ends_with(mark.substr(0, bytes))) return bytes;
    return 0;
}

}  // namespace

std::string make_mark() {
    std::array<unsigned char, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
    return fmt::format("{}{:02x}", opening, fmt::join(bytes, ""));
}

std::string frames_of(const LauncherRecord& record, std::string_view mark) {
    std::string out;
    std::string text = escaped(record.encode());
    for (; text.size() > longest_text; text.erase(0, longest_text))
        out += fmt::format("{}+{}\n", mark, std::string_view(text).substr(0, longest_text));
    return out + fmt::format("{}.{}\n", mark, text);
}

std::vector<LauncherRecord> FrameScanner::feed(std::string_view bytes, std::string& output) {
    std::vector<LauncherRecord> records;
    waiting_ += bytes;
    while (take_output(output) && take_frame(records)) {
    }
    return records;
}

void FrameScanner::finish(std::string& output) {
    output += waiting_;
    waiting_.clear();
}

// True: what waits begins with a mark.
bool FrameScanner::take_output(std::string& output) {
    const auto found = waiting_.find(mark_);
    const auto bytes = found == std::string::npos ? waiting_.size() - begun(waiting_, mark_) : found;
    output.append(waiting_, 0, bytes);
    waiting_.erase(0, bytes);
    return found != std::string::npos;
}

// True: a whole frame has been taken.
bool FrameScanner::take_frame(std::vector<LauncherRecord>& records) {
    const auto end = waiting_.find('\n');
    if (end == std::string::npos) return false;
    const bool continues = waiting_[mark_.size()] == '+';
    if (end > mark_.size()) record_.append(waiting_, mark_.size() + 1, end - mark_.size() - 1);
    waiting_.erase(0, end + 1);
    if (continues) return true;
    std::string bytes = unescaped(record_);
    if (!bytes.empty()) bytes.pop_back();  // the record's last byte
    if (auto record = LauncherRecord::decode(bytes)) records.push_back(std::move(*record));
    record_.clear();
    return true;
}

}  // namespace npushmem::run
