#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_cli.sh COSET FOLDER: the command line, pipes, and the golden outputs in FOLDER.
coset=$1 here=$2 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME="$work/state" TERM=xterm
unset NO_COLOR

fail() { echo "FAILED: $*"; failed=1; }

# one line on standard error, nothing on standard output, status 2
bad() {
    "$coset" learn "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    [ $status -eq 2 ] || fail "learn $*: status $status"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "learn $*: not one line: $(cat "$work/err")"
    [ -s "$work/out" ] && fail "learn $*: standard output"
}
bad --ranks 1
bad --ranks 17
bad --ranks four
bad --ranks
bad --size 63
bad --size 2000G
bad --size x
bad --seed -1
bad --seed 1.5
bad --count -3
bad --nonsense
bad nonsense
bad 0
bad -- -5
bad 1000000
bad 99999999999999999999
bad 3x
bad 3 4
bad 3 ring
bad ring 3
bad --list 3
bad ''

same() {
    diff "$here/$1" "$work/out" >"$work/diff" || { fail "differs from $1:"; head -20 "$work/diff"; }
}
"$coset" learn ring --ranks 3 --size 12M >"$work/out" </dev/null || fail "walk"
same golden_ring.expected
"$coset" learn lattice >"$work/out" </dev/null || fail "lattice"
same golden_lattice.expected
printf 'a\n\nnonsense\nb\nq\n' | "$coset" learn quiz cost --seed 7 >"$work/out" || fail "quiz"
same golden_quiz.expected
"$coset" learn --reset >"$work/out" 2>&1 || fail "reset"
[ "$(cat "$work/out")" = "Forgotten: $work/state/coset/learn.json" ] || fail "reset says $(cat "$work/out")"
[ -e "$work/state/coset/learn.json" ] && fail "reset left the file"
"$coset" learn --reset >/dev/null || fail "reset of nothing"

# words and options in any order
"$coset" learn --ranks 3 ring --size 12M >"$work/out" && same golden_ring.expected
"$coset" learn --size 12M --ranks=3 -- ring >"$work/out" && same golden_ring.expected

# a pipe gets plain text, and colours never come where nobody asked
"$coset" learn >"$work/out" </dev/null || fail "all lessons"
LC_ALL=C grep -q '[^ -~]' "$work/out" && fail "other characters than ASCII in a pipe"

# the list has every question once, by number
questions=$("$coset" learn --list </dev/null | grep -c '^ *[0-9][0-9]*  ')
[ "$questions" -ge 48 ] || fail "only $questions questions"
answers=$("$coset" learn --answers </dev/null | grep -c 'Right: ')
[ "$answers" -eq "$questions" ] || fail "$answers answers for $questions questions"
"$coset" learn "$questions" </dev/null >/dev/null || fail "the last question"

# what does not end well: a closed pipe, a full disk, a missing home
"$coset" learn 2>"$work/err" | head -1 >/dev/null
[ -s "$work/err" ] && fail "a closed pipe: $(cat "$work/err")"
echo a | env -u XDG_STATE_HOME HOME=relative "$coset" learn 1 >/dev/null 2>&1 || fail "no home"
"$coset" learn --html "$work/no/such/folder" >/dev/null 2>"$work/err" && fail "html into nowhere"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "html into nowhere: not one line"
for time in first second; do
    "$coset" learn --html "$work/page" >/dev/null || fail "html for the $time time"
done
[ "$(ls -A "$work/page")" = index.html ] || fail "html leaves more than the page: $(ls -A "$work/page")"

# on a terminal: pages, colours, back and stop; without colours where NO_COLOR asks for it
if command -v script >/dev/null; then
    printf '\n\nb\nq\n' | script -qec "'$coset' learn ring" /dev/null >"$work/out" 2>&1
    tr -d '\r' <"$work/out" | sed 's/\x1b\[[0-9;]*[mHJ]//g' | grep -o '[0-9]* of 11$' | tr '\n' ' ' >"$work/pages"
    [ "$(cat "$work/pages")" = '1 of 11 2 of 11 3 of 11 2 of 11 ' ] || fail "pages on a terminal: $(cat "$work/pages")"
    grep -q "$(printf '\033\\[1m')" "$work/out" || fail "no colours on a terminal"
    printf 'q\n' | NO_COLOR=1 script -qec "'$coset' learn ring" /dev/null >"$work/out" 2>&1
    grep -q "$(printf '\033\\[1m')" "$work/out" && fail "colours in spite of NO_COLOR"
    printf 'b\n' | TERM=dumb script -qec "'$coset' learn 3 --seed 1" /dev/null >"$work/out" 2>&1
    grep -q "$(printf '\033')" "$work/out" && fail "control codes on a dumb terminal"
    grep -q 'The answer is\|Right' "$work/out" || fail "no verdict on a terminal"
fi
exit $failed
