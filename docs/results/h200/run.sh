#!/bin/bash
# The campaigns of docs/results on a GPU host without a network, from a folder of wheels (docs/gpu-host.md).
#   [TUNE_SECONDS=45] SECONDS_LEFT=280 OUT=folder bash docs/results/h200/run.sh FOLDER_OF_WHEELS [options of campaigns.py]
set -eu
cd "$(dirname "$0")/../../.."
wheels=$1
shift
site=${SITE:-/tmp/autoresearch-site}
python3 campaigns/harness/join.py install "$wheels" --into "$site"
export PYTHONPATH="$site:$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
if [ "${TUNE_SECONDS:-0}" != 0 ]; then  # first find the sizes, and write them into the candidates here
  # shellcheck disable=SC2086
  python3 docs/results/h200/tune.py --seconds "$TUNE_SECONDS" --out "${OUT:-campaigns-out}" --no-baselines --apply ${TUNE_OPTIONS:-}
fi
exec python3 docs/results/h200/campaigns.py --seconds "${SECONDS_LEFT:-280}" --out "${OUT:-campaigns-out}" "$@"
