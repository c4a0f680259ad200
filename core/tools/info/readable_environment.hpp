// The variables that can be read, when some cannot: one mistake must not hide everything else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::info {

class ReadableEnvironment final : public Environment {
public:
    // Without the malformed ones of `all`.
    explicit ReadableEnvironment(const Environment& all);

    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override;
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override { return readable_; }

    // One for every variable left out, in order of their names.
    [[nodiscard]] const std::vector<Status>& mistakes() const { return mistakes_; }

private:
    std::map<std::string, std::string> readable_;  // NPUSHMEM_*
    std::map<std::string, std::string> standard_;  // of OpenSHMEM
    std::vector<Status> mistakes_;
};

}  // namespace npushmem::info
