#include "core/plugin/search_path.hpp"

#include <dlfcn.h>
#include <link.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/base/strings.hpp"

#ifndef NPUSHMEM_INSTALLED_PLUGIN_DIR
#define NPUSHMEM_INSTALLED_PLUGIN_DIR "/usr/local/lib/npushmem"
#endif

namespace npushmem {
namespace {

namespace fs = std::filesystem;

// One spelling per directory, so that a directory listed twice is searched once.
std::string normal(const fs::path& directory) {
    std::error_code error;
    fs::path out = fs::weakly_canonical(directory, error);
    if (error) out = directory.lexically_normal();
    return out.string();
}

void append_once(std::vector<std::string>& list, const fs::path& directory) {
    std::string text = normal(directory);
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

}  // namespace

std::string directory_of_this_library() {
    Dl_info info{};
    link_map* loaded = nullptr;
    auto* const own = reinterpret_cast<void*>(&directory_of_this_library);
    if (dladdr1(own, &info, reinterpret_cast<void**>(&loaded), RTLD_DL_LINKMAP) == 0) return {};
    // The main program has no name in the linker's list, and dladdr repeats argv[0], which may be relative or untrue.
    const bool main_program = loaded == nullptr || loaded->l_name == nullptr || loaded->l_name[0] == '\0';
    std::error_code error;
    const fs::path file = main_program ? fs::read_symlink("/proc/self/exe", error) : fs::path(loaded->l_name);
    if (error) return {};
    const fs::path real = fs::weakly_canonical(file, error);
    return (error ? file : real).parent_path().string();
}

std::vector<std::string> plugin_search_path(std::string_view user_path) {
    return plugin_search_path_from(user_path, directory_of_this_library());
}

std::vector<std::string> plugin_search_path_from(std::string_view user_path, std::string_view own_directory) {
    std::vector<std::string> out;
    for (const auto& directory : split(user_path, ':'))
        if (!directory.empty()) append_once(out, directory);
    if (const fs::path own = own_directory; !own.empty()) {
        append_once(out, own / "npushmem");
        append_once(out, own / ".." / "lib" / "npushmem");
    }
    append_once(out, NPUSHMEM_INSTALLED_PLUGIN_DIR);
    return out;
}

std::vector<std::string> missing_directories(std::string_view user_path) {
    std::vector<std::string> out;
    for (const auto& directory : split(user_path, ':')) {
        std::error_code error;
        if (directory.empty() || fs::is_directory(directory, error)) continue;
        out.push_back(
            fmt::format("NPUSHMEM_PLUGIN_PATH names '{}', which is no directory; no plugin is found there", directory));
    }
    return out;
}

}  // namespace npushmem
