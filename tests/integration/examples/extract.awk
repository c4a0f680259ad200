# SPDX-License-Identifier: BSD-3-Clause
# awk -v prefix=<path> -f extract.awk <header>: writes each example in the comments of a C header to <path><number>.inc.
# An example is a run of comment lines indented by four columns more than the text, with a semicolon in it.
function finish() {
    if (example ~ /;/) {
        ++number
        printf "%s", example > (prefix number ".inc")
    }
    example = ""
}
/^ \*     / {
    example = example substr($0, 8) "\n"
    next
}
{ finish() }
