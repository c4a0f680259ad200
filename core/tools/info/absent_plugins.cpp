#include "core/tools/info/absent_plugins.hpp"

#include <filesystem>
#include <fstream>

namespace npushmem::info {

std::vector<AbsentPlugin> absent_plugins(const std::vector<std::string>& folders) {
    std::vector<AbsentPlugin> out;
    for (const auto& folder : folders) {
        std::ifstream list(std::filesystem::path(folder) / "absent-plugins.txt");
        std::string kind;
        AbsentPlugin next{};
        while (list >> kind >> next.name && std::getline(list >> std::ws, next.why)) {
            next.kind = kind == name_of(PluginKind::bootstrap) ? PluginKind::bootstrap : PluginKind::transport;
            out.push_back(next);
        }
    }
    return out;
}

}  // namespace npushmem::info
