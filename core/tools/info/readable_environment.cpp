#include "core/tools/info/readable_environment.hpp"

#include "core/base/config.hpp"

namespace npushmem::info {

namespace {

class OneVariable final : public Environment {
public:
    OneVariable(const std::string& name, const std::string& value) : name_(name), value_(value) {}

    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
        return name == name_ ? std::optional(value_) : std::nullopt;
    }
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override {
        return name_.starts_with("NPUSHMEM_") ? std::map<std::string, std::string>{{name_, value_}}
                                              : std::map<std::string, std::string>{};
    }

private:
    const std::string& name_;
    const std::string& value_;
};

}  // namespace

ReadableEnvironment::ReadableEnvironment(const Environment& all) {
    for (const auto& [name, value] : all.npushmem_variables()) {
        const auto alone = Config::read(OneVariable(name, value));
        if (alone.ok())
            readable_.emplace(name, value);
        else
            mistakes_.push_back(alone.status());
    }
    for (const auto& variable : standard_variables())
        for (const std::string name : variable.names)
            if (const auto value = all.get(name)) {
                const Status alone = Config::read(OneVariable(name, *value)).status();
                alone.ok() ? (void)standard_.emplace(name, *value) : mistakes_.push_back(alone);
            }
}

std::optional<std::string> ReadableEnvironment::get(const std::string& name) const {
    for (const auto* values : {&readable_, &standard_})
        if (const auto found = values->find(name); found != values->end()) return found->second;
    return std::nullopt;
}

}  // namespace npushmem::info
