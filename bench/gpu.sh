#!/bin/sh
# Everything that needs an NVIDIA GPU, in less than ten minutes: the tests, compute-sanitizer,
# `bench fusion` and `bench crossval` on the GPU and on the CPU. Results go to $OUT, or docs/results.
# Each step has its own time limit, and a step that fails does not stop the others. The exit status
# is 0 if all steps succeeded, 1 if one failed, and 3 if there is no GPU.
#
#     sh bench/gpu.sh            # PYTHON=/path/to/python uses an environment that exists
#
# RISKSET_GPU_EMULATOR=1 runs the steps that need no GPU (their tests use the emulator).
cd "$(dirname "$0")/.." || exit 1
out=${OUT:-docs/results}
summary=
failed=0
is_emulated=${RISKSET_GPU_EMULATOR:-0}

if [ "$is_emulated" != 1 ] && ! nvidia-smi -L 2>/dev/null; then
    echo "bench/gpu.sh: there is no NVIDIA GPU, or its driver does not work (nvidia-smi -L)." >&2
    echo "Run this script on a machine with one; nothing was written." >&2
    exit 3
fi
mkdir -p "$out" || exit 1

# step NAME SECONDS COMMAND...: run it with a limit, keep its output, and note how it ended.
step() {
    name=$1
    limit=$2
    shift 2
    log="$out/gpu-$name.log"
    echo "== $name (at most $limit s)"
    begun=$(date +%s)
    timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1
    code=$?
    took=$(($(date +%s) - begun))
    tail -n 3 "$log"
    case $code in
        0) ended=ok ;;
        124 | 137) ended="stopped after $limit s" ;;
        *) ended="failed with status $code" ;;
    esac
    [ $code -eq 0 ] || failed=1
    summary="$summary$name: $ended, $took s
"
}

python=${PYTHON:-}
if [ -z "$python" ]; then
    step environment 150 sh -c "python3 -m venv .gpu-venv &&
        .gpu-venv/bin/python -m pip install --quiet --editable '.[cuda]' pytest hypothesis pandas"
    python=.gpu-venv/bin/python
fi
if [ "$is_emulated" = 1 ]; then
    step tests 120 "$python" -m pytest -q -p no:cacheprovider tests/gpu/test_fusion.py
    step fusion-cpu 60 "$python" -m riskset bench fusion --rows 1000 --repeats 1 --out "$out/cpu"
else
    step device 20 "$python" -m riskset info
    step tests 120 "$python" -m pytest -q -p no:cacheprovider -m gpu tests/gpu
    if command -v compute-sanitizer >/dev/null; then
        for tool in memcheck racecheck; do
            step "$tool" 60 compute-sanitizer --tool "$tool" --error-exitcode 9 \
                "$python" -m pytest -q -p no:cacheprovider -m gpu tests/gpu/test_kernels.py
        done
    else
        summary="${summary}compute-sanitizer: left out, not installed
"
    fi
    for device in cuda cpu; do
        step "fusion-$device" 30 "$python" -m riskset bench fusion --device "$device" \
            --out "$out/$device"
        step "crossval-$device" 60 "$python" -m riskset bench crossval --device "$device" \
            --rows 100000 --columns 1000 --repeats 1 --out "$out/$device"
    done
fi

printf '\n%s' "$summary" | tee "$out/gpu-summary.txt"
exit $failed
