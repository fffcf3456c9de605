#!/bin/bash
# Runs the ExLlama engines' tests and benchmark on a machine with one NVIDIA GPU, PyTorch and nvcc,
# without internet, from a checkout. What it lacks comes in the folders that prepare.py makes:
#
#   bash bench/gpu/run.sh keep FOLDER     takes one folder
#   bash bench/gpu/run.sh build           compiles the libraries' CUDA code; OUT gets it in parts
#   bash bench/gpu/run.sh test|speed      after all folders were taken
#   bash bench/gpu/run.sh all             build, test, speed, as far as SECONDS_LEFT (540) reach;
#                                         run it again while the machine is yours to compile on
#
# WORK (/tmp/hookline-gpu) is where everything lies, OUT (WORK/out) what is to be brought back.
set -euo pipefail
cd "$(dirname "$0")/../.."

WORK=${WORK:-/tmp/hookline-gpu}
OUT=${OUT:-$WORK/out}
PYTHON=${PYTHON:-python3}
ENGINES=${ENGINES:-exllamav2 exllamav3}  # the one that compiles sooner first
PART_BYTES=15M
DEADLINE=$((SECONDS + ${SECONDS_LEFT:-540}))
mkdir -p "$WORK/kept" "$OUT"

export PYTHONPATH="$WORK/site:$WORK/built:$PWD/core:$PWD/plugins/structured"
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST:-9.0} MAX_JOBS=${MAX_JOBS:-$(nproc)}
export TORCH_EXTENSIONS_DIR="$WORK/compiled"
# A machine may have nvcc and CUDA's core only; PyTorch's own wheels bring the headers of the rest.
CPATH=$("$PYTHON" -c 'import glob, site
print(":".join(f for s in site.getsitepackages() for f in glob.glob(s + "/nvidia/cu*/include")))'
)${CPATH:+:$CPATH}
export CPATH

say() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; }

left() { echo $((DEADLINE > SECONDS ? DEADLINE - SECONDS : 1)); }

limited() { timeout --signal=INT --kill-after=10 "$(left)" "$@"; }

keep() {
    cp "$1"/* "$WORK/kept/"
    ls -l "$WORK/kept"
}

unpack() {
    [ -e "$WORK/unpacked" ] && return
    say 'Unpacking'
    "$PYTHON" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir \
        --target "$WORK/site" "$WORK"/kept/*.whl
    cat "$WORK"/kept/model.gguf.* >"$WORK/model.gguf"
    if compgen -G "$WORK/kept/built.*" >/dev/null; then
        mkdir -p "$WORK/built"
        cat "$WORK"/kept/built.* | tar -xJ -C "$WORK/built"
    fi
    "$PYTHON" bench/gpu/convert.py "$WORK/model.gguf" "$WORK/smollm2"
    touch "$WORK/unpacked"
}

build() {
    unpack
    local engine
    # A compilation that was cut off leaves its lock, for which the next would wait without end.
    find "$TORCH_EXTENSIONS_DIR" -name lock -delete 2>/dev/null || true
    for engine in $ENGINES; do
        say "Importing $engine, which compiles it"
        limited "$PYTHON" -c "import $engine" || say "$engine cannot be imported"
    done
    mkdir -p "$WORK/built"
    find "$TORCH_EXTENSIONS_DIR" -name '*_ext.so' -exec cp {} "$WORK/built/" \; 2>/dev/null || true
    if compgen -G "$WORK/built/*.so" >/dev/null; then
        tar -cJ -C "$WORK/built" . | split --bytes="$PART_BYTES" --numeric-suffixes - "$OUT/built."
        ls -l "$OUT"
    fi
}

tests() {
    unpack
    say 'Tests'
    GPU_TEST_MODEL="$WORK/smollm2" limited "$PYTHON" -m pytest -p no:cacheprovider \
        -m gpu tests/gpu -v -o addopts='--import-mode=importlib -ra' 2>&1 | tee "$OUT/tests.txt"
}

speed() {
    unpack
    local engine
    for engine in $ENGINES; do
        say "Speed of $engine"
        limited "$PYTHON" bench/gpu/speed.py "$WORK/smollm2" --engine "$engine" 2>&1 |
            tee "$OUT/speed-$engine.txt" || say "$engine was not measured"
    done
}

case "${1:-}" in
    keep) keep "$2" ;;
    build) build ;;
    test) tests ;;
    speed) speed ;;
    all)
        nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv
        DEADLINE=$((DEADLINE - 150)) build  # what is not compiled by then, the next run goes on with
        tests || say 'There were failures'
        speed
        ;;
    *)
        sed -n '2,13p' "$0"
        exit 2
        ;;
esac
