#!/usr/bin/env bash
# One step of a GitHub job: Markdown to its summary, annotations to its log, the verdict in one line to its outputs.
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
set -f # names of logs are taken as they are
# shellcheck disable=SC2086 # several logs are several words
coroner --no-config --redact "${REDACT:-identity}" --max-chars github \
  --format "markdown=$dir/report.md" --format "oneline=$dir/oneline" --format github -- $LOGS
status=$?
if [ -s "$dir/report.md" ]; then
  cat "$dir/report.md" >> "$GITHUB_STEP_SUMMARY"
  printf 'oneline=%s\n' "$(head -n 1 "$dir/oneline")" >> "$GITHUB_OUTPUT"
fi
case $status in
  1 | 3) [ "${FAIL:-false}" = true ] && exit "$status" || exit 0 ;;
  *) exit "$status" ;;
esac
