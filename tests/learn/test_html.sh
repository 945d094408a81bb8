#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_html.sh COSET: the page in headless Chromium: its self-test clicks through everything, and the console stays empty.
# Skipped (77) where Chromium is absent or cannot start.
coset=$1
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "skipped: no Chromium here (Debian: apt-get install chromium)"
    exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

"$coset" learn --html "$work/page" --ranks 5 >/dev/null || exit 1
page="$work/page/index.html"
# nothing to fetch, and no address of anything but the namespace of SVG
grep -o '\(src\|href\)="[^#"][^"]*"' "$page" | grep -v 'href="data:,"' && { echo "FAILED: the page refers to something"; exit 1; }
grep -o 'https\{0,1\}://[^"]*' "$page" | grep -v '^http://www.w3.org/2000/svg$' && { echo "FAILED: an address"; exit 1; }

# browse FRAGMENT WIDTH: the page's document to $work/dom, Chromium's own messages to $work/log
browse() {
    timeout 90 "$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$work/profile" \
        --enable-logging=stderr --window-size="$2,900" --virtual-time-budget=10000 --dump-dom "file://$page$1" \
        >"$work/dom" 2>"$work/log" </dev/null
}
if ! browse '' 1000 || ! grep -q '</html>' "$work/dom"; then
    echo "skipped: Chromium does not start here"
    tail -3 "$work/log"
    exit 77
fi
failed=0
quiet() {
    grep -i 'CONSOLE' "$work/log" && { echo "FAILED: the console is not empty ($1)"; failed=1; }
}
quiet 'as it is'
grep -q 'id="ring-tool"' "$work/dom" || { echo "FAILED: no stepper"; failed=1; }
grep -q 'id="self-test"' "$work/dom" && { echo "FAILED: the self-test runs unasked"; failed=1; }
for width in 390 1000; do
    browse '#self-test' $width
    quiet "self-test at $width"
    said=$(grep -o '<output id="self-test">[^<]*' "$work/dom" | sed 's/.*>//')
    echo "self-test at $width: $said"
    case $said in
    ok\ *) ;;
    *) failed=1 ;;
    esac
done
exit $failed
