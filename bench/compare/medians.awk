# SPDX-License-Identifier: BSD-3-Clause
# Input lines: "comparison;ours;theirs;unit;label of theirs, if it is not a program". Prints per comparison the medians, and the
# median, minimum and maximum of the ratios.
function median(list, n,  i, j, t) {
    for (i = 2; i <= n; ++i) for (j = i; j > 1 && list[j - 1] > list[j]; --j) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
function flush(  m) {
    if (!n) return
    m = median(ratio, n)
    printf "%-82s npushmem %9.3f %s   %11s %9.3f %s   ratio %.2f (%.2f to %.2f)\n", name, median(us, n), unit, whose, median(them, n), unit, m, ratio[1], ratio[n]
}
$1 != name { flush(); n = 0; name = $1; unit = $4; whose = $5 ? $5 : "own program" }
$3 > 0 { ++n; us[n] = $2; them[n] = $3; ratio[n] = $2 / $3 }
END { flush() }
