#!/bin/bash
# The campaigns of docs/results on a host with two GPUs: two products, each with one card, a data folder and half of the problems.
#   [SECONDS_LEFT=520] bash docs/results/h200/two.sh FOLDER_OF_WHEELS OUT
# The first card takes what toy_deepseek is made of, then measures its step and tries the exported package.
set -u
cd "$(dirname "$0")/../../.."
wheels=$1 out=$2 site=${SITE:-/tmp/autoresearch-site} left=${SECONDS_LEFT:-520}
python3 campaigns/harness/join.py install "$wheels" --into "$site" || exit
export PYTHONPATH="$site:$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
mkdir -p "$out/a" "$out/b"
lane() {  # lane NAME CARD SECONDS options of campaigns.py
  local name=$1 card=$2 seconds=$3
  shift 3
  CUDA_VISIBLE_DEVICES=$card AUTORESEARCH_HOME=/tmp/autoresearch-$name python3 docs/results/h200/campaigns.py \
    --home "/tmp/autoresearch-$name" --seconds "$seconds" --out "$out/$name" "$@"
}
{
  lane a 0 $((left - 60)) --stack-seconds 120 --each 6 --order mla_decode=06,05 \
    --only mla_decode:cuda --only moe_two_of_eight --only lm_head --only rmsnorm
  export CUDA_VISIBLE_DEVICES=0 AUTORESEARCH_HOME=/tmp/autoresearch-a
  python3 manage.py export_kernels /tmp/autoresearch-package &&
    python3 docs/results/h200/package_check.py /tmp/autoresearch-package/*.whl --seconds 40
} > "$out/a.log" 2>&1 &
lane b 1 "$left" --scenario "" --each 12 --order sparse_mla_decode=05,04 --only moe_grouped_gemm --only matmul_bias_gelu \
  --only sparse_mla_decode:cuda --only softmax --only layernorm_residual --only swiglu > "$out/b.log" 2>&1 &
wait
cat "$out/a.log" "$out/b.log"
