// How much a test that runs many cores can afford.
#pragma once

namespace npushmem::npu::test {

// Under the thread sanitizer each core of each run costs it a thread context: a millisecond where others cost a
// microsecond. Everything in these tests happens on one thread, so it learns little from more of them.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool cores_are_costly = true;
#else
inline constexpr bool cores_are_costly = false;
#endif

}  // namespace npushmem::npu::test
