#include "core/base/futex_counter.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>

namespace npushmem {

std::uint32_t* FutexCounter::low_half() const {
    constexpr std::size_t offset = std::endian::native == std::endian::little ? 0 : sizeof(std::uint32_t);
    return reinterpret_cast<std::uint32_t*>(line_ + offset);
}

std::uint32_t FutexCounter::wake(std::uint32_t count) {
    const long woken = syscall(SYS_futex, low_half(), FUTEX_WAKE, static_cast<int>(count), nullptr, nullptr, 0);
    return woken > 0 ? static_cast<std::uint32_t>(woken) : 0;
}

}  // namespace npushmem
