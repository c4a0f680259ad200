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
    [[nodiscard]] std::map<std::string, std::string> ours() const override { return {{name_, value_}}; }

private:
    const std::string& name_;
    const std::string& value_;
};

}  // namespace

ReadableEnvironment::ReadableEnvironment(const Environment& all) {
    for (const auto& [name, value] : all.ours()) {
        const auto alone = Config::read(OneVariable(name, value));
        if (alone.ok())
            readable_.emplace(name, value);
        else
            mistakes_.push_back(alone.status());
    }
}

std::optional<std::string> ReadableEnvironment::get(const std::string& name) const {
    const auto found = readable_.find(name);
    return found == readable_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace npushmem::info
