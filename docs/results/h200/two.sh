#!/bin/bash
# The campaigns of docs/results on a host with two GPUs: two products, each with one card, a data folder and half of the problems.
#   [SECONDS_LEFT=520] bash docs/results/h200/two.sh FOLDER_OF_WHEELS OUT
# The first card takes what toy_deepseek is made of, then measures its step; the second finds some sizes first.
set -u
cd "$(dirname "$0")/../../.."
wheels=$1 out=$2 site=${SITE:-/tmp/autoresearch-site} left=${SECONDS_LEFT:-520} tune=${TUNE_SECONDS:-45}
python3 campaigns/harness/join.py install "$wheels" --into "$site" || exit
export PYTHONPATH="$site:$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
mkdir -p "$out/a" "$out/b"
lane() {  # lane NAME CARD SECONDS options of campaigns.py
  local name=$1 card=$2 seconds=$3
  shift 3
  CUDA_VISIBLE_DEVICES=$card AUTORESEARCH_HOME=/tmp/autoresearch-$name python3 docs/results/h200/campaigns.py \
    --home "/tmp/autoresearch-$name" --seconds "$seconds" --out "$out/$name" "$@"
}
lane a 0 "$left" --stack-seconds 125 --each 8 --order mla_decode=06,05 \
  --only mla_decode:cuda --only moe_two_of_eight --only lm_head --only rmsnorm > "$out/a.log" 2>&1 &
{
  CUDA_VISIBLE_DEVICES=1 python3 docs/results/h200/tune.py --seconds "$tune" --workers 12 --no-baselines --apply \
    --only matmul_bias_gelu,softmax --files 01,04 --out /tmp/autoresearch-tune
  lane b 1 $((left - tune)) --scenario "" --each 12 --order moe_grouped_gemm=05,04 --order matmul_bias_gelu=01,02 \
    --order sparse_mla_decode=05,04 \
    --only moe_grouped_gemm --only matmul_bias_gelu --only softmax:cuda --only layernorm_residual --only sparse_mla_decode:cuda
} > "$out/b.log" 2>&1 &
wait
cat "$out/a.log" "$out/b.log"
