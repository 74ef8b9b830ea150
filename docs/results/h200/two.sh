#!/bin/bash
# The campaigns of docs/results on a host with two GPUs, a card for each lane.
#   [SECONDS_LEFT=520] bash docs/results/h200/two.sh FOLDER_OF_WHEELS OUT
# The first card takes what toy_deepseek is made of, measures its step, and then one problem's tuning; the second says how long a
# warm evaluation takes, has the other problems judged and the red team's honest candidates.
set -u
cd "$(dirname "$0")/../../.."
began=$SECONDS
wheels=$1 out=$2 site=${SITE:-/tmp/autoresearch-site} left=${SECONDS_LEFT:-520}
mkdir -p "$out"
python3 campaigns/harness/join.py install "$wheels" --into "$site" || exit
export PYTHONPATH="$site:$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
remaining() { echo $((left - SECONDS + began)); }
lane() {  # lane NAME SECONDS options of campaigns.py
  local name=$1 seconds=$2
  shift 2
  AUTORESEARCH_HOME=/tmp/autoresearch-$name python3 docs/results/h200/campaigns.py \
    --home "/tmp/autoresearch-$name" --seconds "$seconds" --out "$out/$name" "$@"
}
{
  export CUDA_VISIBLE_DEVICES=0
  lane stack 320 --stack-seconds 120 --each 1 --order mla_decode=06 \
    --only lm_head --only moe_two_of_eight --only mla_decode:cuda
  lane tuning "$(remaining)" --scenario "" --each 60 --order rmsnorm=01 --only rmsnorm
} > "$out/a.log" 2>&1 &
{
  export CUDA_VISIBLE_DEVICES=1
  timeout 112 python3 docs/results/h200/twelve.py --times 9 --out /tmp/twelve
  lane others $(($(remaining) - 130)) --scenario "" --each 8 --order moe_grouped_gemm=05,04 --order matmul_bias_gelu=01,02 \
    --only softmax:cuda --only matmul_bias_gelu --only layernorm_residual
  AUTORESEARCH_HOME=/tmp/autoresearch-team python3 manage.py redteam --gpu --only honest --seconds 115
} > "$out/b.log" 2>&1 &
wait
cat "$out/a.log" "$out/b.log"
