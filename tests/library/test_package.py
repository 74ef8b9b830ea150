"""The exported package in an environment of its own, in which this product cannot be imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from campaigns import library

from .conftest import approved, environment, reference

HEAD = """
import json, random, torch, approved_kernels as k
torch.set_num_threads(1)
def error(out, expected):
    expected = expected.double()
    return float(((out.double() - expected).abs() / (expected.abs() + expected.square().mean().sqrt())).max())
"""


def test_this_product_is_not_there(fresh):
    script = "import json, importlib.util as u; print(json.dumps([u.find_spec(n) is None for n in ('campaigns','django_x')]))"
    assert fresh.run(script) == [True, True]


def test_it_computes_what_the_reference_does_over_the_whole_range(fresh):
    found = fresh.run(
        HEAD
        + reference("rmsnorm")
        + """
reference, make_inputs = reference_and_inputs()
draw, generator, worst, by_kernel = random.Random(1), torch.Generator().manual_seed(1), 0.0, 0
cases = [(rows, hidden) for rows in (2, 3, 511, 512) for hidden in (1, 5, 4097)]
cases += [(2, 65537), *((draw.randint(2, 512), int(2 ** draw.uniform(0, 12))) for _ in range(40))]
for rows, hidden in cases:
    axes = {"rows": rows, "hidden": hidden}
    inputs = make_inputs(axes, generator, "cpu", torch.float32)
    by_kernel += k.rmsnorm.explain(*inputs.values()).startswith("kernel")
    worst = max(worst, error(k.rmsnorm(*inputs.values()), reference(inputs, axes)["y"]))
print(json.dumps([worst, by_kernel, len(cases)]))
"""
    )
    worst, by_kernel, cases = found
    assert worst < 1e-4
    assert by_kernel == cases


@pytest.mark.parametrize(("rows", "hidden", "why"), [
    (1, 64, "rows = 1 is outside the approved 2 to 512"),
    (513, 64, "rows = 513 is outside the approved 2 to 512"),
    (4, 70000, "hidden = 70000 is outside the tested 1 to 65537"),
])  # fmt: skip
def test_it_falls_back_outside_of_the_range(fresh, rows, hidden, why):
    told, by_kernel, worst = fresh.run(
        HEAD
        + f"""
x, w = torch.randn({rows}, {hidden}), torch.randn({hidden})
kernel = k.rmsnorm.run((x, w))
wide = x.double()
expected = wide / (wide.square().mean(-1, keepdim=True) + 1e-6).sqrt() * w.double()
print(json.dumps([k.rmsnorm.explain(x, w), kernel is not None, error(k.rmsnorm(x, w), expected)]))
"""
    )
    assert told == f"fallback: {why}"
    assert not by_kernel
    assert worst < 1e-4


@pytest.mark.parametrize(("what", "why"), [
    ("x.double(), w.double()", "no kernel was approved for this hardware and dtype"),
    ("x.double(), w", "the dtypes are not those of the operator"),
    ("x.t().contiguous().t(), w", "a tensor is not contiguous"),
    ("torch.randn(8 * 64 + 1)[1:].view(8, 64), w", "a tensor does not begin at a multiple of 64 bytes"),
    ("x.clone().requires_grad_(), w", "a gradient is wanted, and a kernel has none"),
])  # fmt: skip
def test_what_a_kernel_cannot_take_goes_to_the_fallback(fresh, what, why):
    told, shape = fresh.run(
        HEAD
        + f"""
x, w = torch.randn(8, 64), torch.randn(64)
args = ({what})
fine = all(a.dtype == args[0].dtype for a in args)
print(json.dumps([k.rmsnorm.explain(*args), list(k.rmsnorm(*args).shape) if fine else [8, 64]]))
"""
    )
    assert told == f"fallback: {why}"
    assert shape == [8, 64]


def test_shapes_that_contradict_each_other_are_an_error_that_says_how(fresh):
    text = fresh.run(
        HEAD
        + """
try:
    k.rmsnorm(torch.randn(8, 64), torch.randn(65))
except ValueError as error:
    print(json.dumps(str(error)))
"""
    )
    assert text == "rmsnorm: weight: hidden is 65 here and 64 elsewhere"


def test_an_output_can_be_given_also_one_that_lies_over_an_input(fresh):
    assert fresh.run(
        HEAD
        + """
x, w = torch.randn(8, 64), torch.randn(64)
wanted, into = k.rmsnorm(x, w), torch.empty(8, 64)
same = k.rmsnorm(x, w, out=into) is into
over = x.clone()
k.rmsnorm(over, w, out=over)
print(json.dumps([same, bool(torch.equal(into, wanted)), error(over, wanted) < 1e-5]))
"""
    ) == [True, True, True]


def test_gradients_flow_through_the_fallback(fresh):
    assert fresh.run(
        HEAD
        + """
import torch.nn.functional as F
k.softmax.set_fallback(lambda x: F.softmax(x, -1))
x = torch.randn(4, 1024, requires_grad=True)
k.softmax(x)[:, 0].sum().backward()
print(json.dumps(bool(x.grad.abs().sum() > 0)))
"""
    )


def test_a_torch_kernel_runs_too(fresh):
    told, worst = fresh.run(
        HEAD
        + """
x = torch.randn(64, 1000)
print(json.dumps([k.softmax.explain(x), error(k.softmax(x), torch.softmax(x.double(), -1))]))
"""
    )
    assert told.startswith("kernel ")
    assert worst < 1e-4


MODEL = """
import sys, types
model = types.ModuleType("model"); sys.modules["model"] = model
exec('''
import torch
calls = []
def norm(x, weight, eps=1e-6):
    calls.append("norm")
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
class Norm(torch.nn.Module):
    def __init__(self, n):
        super().__init__(); self.weight = torch.nn.Parameter(torch.ones(n))
    def forward(self, x):
        calls.append("Norm"); return norm(x, self.weight)
class Child(Norm): pass
''', model.__dict__)
"""


def test_apply_takes_the_place_of_a_function_and_undo_gives_it_back(fresh):
    assert fresh.run(
        HEAD
        + MODEL
        + """
x, w, before = torch.randn(8, 64), torch.ones(64), model.norm
handle = k.apply({"rmsnorm": "model:norm"})
model.norm(x, w)                  # by the kernel
model.norm(x=x, weight=w)         # by names, too
inside = list(model.calls)
model.norm(x, w, eps=1e-5)        # another argument: the original
model.norm(torch.randn(1, 64), w) # outside: the original
handle.undo()
print(json.dumps([inside, model.calls, model.norm is before]))
"""
    ) == [[], ["norm", "norm"], True]


def test_apply_adapts_a_method_and_leaves_inheritance_as_it_was(fresh):
    assert fresh.run(
        HEAD
        + MODEL
        + """
adapt = {"rmsnorm": lambda self, x: (x, self.weight)}
with torch.no_grad(), k.apply({"rmsnorm": "model:Child.forward"}, adapt=adapt):
    out = model.Child(64)(torch.randn(8, 64))
    during = list(model.calls)
    model.Norm(64)(torch.randn(8, 64))
print(json.dumps([during, model.calls, "forward" in vars(model.Child)]))
"""
    ) == [[], ["Norm", "norm"], False]


def test_apply_is_all_or_nothing_and_undo_sees_who_came_after(fresh):
    assert fresh.run(HEAD + MODEL + """
before, said = model.norm, []
for act in (lambda: k.apply({"rmsnorm": "model:norm", "softmax": "model:nothing"}), lambda: k.apply({"gelu": "model:norm"})):
    try:
        act()
    except ValueError as error:
        said.append(str(error))
same = model.norm is before
k.apply({"rmsnorm": "model:norm"})
model.norm = lambda x: x
try:
    k.undo()
except RuntimeError as error:
    said.append(str(error))
print(json.dumps([same, said]))
""") == [True, [
        "'model:nothing': there is no such function",
        "no operator gelu: there are rmsnorm, softmax",
        "model:norm was replaced again by somebody else: undo that first",
    ]]  # fmt: skip


def test_a_kernel_is_built_once_and_found_in_the_cache_afterwards(fresh):
    script = (
        HEAD
        + """
import time
began = time.perf_counter()
k.rmsnorm(torch.randn(8, 64), torch.randn(64))
print(json.dumps(time.perf_counter() - began))
"""
    )
    cache = fresh.home / "other"
    cache.mkdir(mode=0o700)
    fresh.run(script, APPROVED_KERNELS_CACHE=str(cache))
    (built,) = cache.iterdir()
    stamp = built.stat().st_mtime_ns
    fresh.run(script, APPROVED_KERNELS_CACHE=str(cache))
    assert [p.stat().st_mtime_ns for p in cache.iterdir()] == [stamp]


def test_without_a_compiler_the_fallback_serves_and_says_so(fresh):
    told, worst = fresh.run(HEAD + """
import warnings
x, w = torch.randn(8, 64), torch.randn(64)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    out = k.rmsnorm(x, w)
wide = x.double()
expected = wide / (wide.square().mean(-1, keepdim=True) + 1e-6).sqrt() * w.double()
print(json.dumps([[str(s.message) for s in said if s.category is RuntimeWarning], error(out, expected)]))
""", PATH="/nonexistent", APPROVED_KERNELS_CACHE=str(fresh.home / "empty"))  # fmt: skip
    assert len(told) == 1
    assert "g++ is not on PATH" in told[0]
    assert worst < 1e-4


def test_a_cache_that_others_may_write_is_not_used(fresh):
    cache = fresh.home / "open"
    cache.mkdir()
    cache.chmod(0o777)
    told = fresh.run(HEAD + """
import warnings
warnings.simplefilter("ignore")
print(json.dumps(k.rmsnorm.explain(torch.randn(8, 64), torch.randn(64))))
""", APPROVED_KERNELS_CACHE=str(cache))  # fmt: skip
    assert "cannot be loaded here" in told


def test_two_kernels_of_one_operator_each_serve_where_they_are_faster(db, tmp_path):
    narrow = approved("rmsnorm", range_={"axis": "rows", "lo": 1, "hi": 64}, speedup=3.0, values={"LANES": 16})
    wide = approved("rmsnorm", "torch", range_={"axis": "rows", "lo": 1, "hi": 512}, speedup=1.5)
    made = library.export("package", None, name="two_kernels")
    wheel = tmp_path / made.filename
    wheel.write_bytes(made.data)
    told = environment(tmp_path, wheel).run("""
import json, torch, two_kernels as k
print(json.dumps([k.rmsnorm.explain(torch.randn(n, 64), torch.randn(64)).split()[1] for n in (64, 65)]))
""")
    assert told == [narrow.sha256[:12] + ":", wide.sha256[:12] + ":"]


def test_a_kernel_that_was_slower_near_here_does_not_serve(db, tmp_path):
    review = approved("rmsnorm")
    review.attempt.measurements.filter(workload="cpu_r16_h16384").update(speedup=0.9)
    wheel = tmp_path / (made := library.export("package", None)).filename
    wheel.write_bytes(made.data)
    told = environment(tmp_path, wheel).run("""
import json, torch, approved_kernels as k
print(json.dumps([k.rmsnorm.explain(torch.randn(*s), torch.randn(s[1])) for s in ((16, 16000), (64, 1024))]))
""")
    assert told[0].startswith("fallback: kernel")
    assert "is not faster near here (0.90x at" in told[0]
    assert told[1].startswith("kernel")


def test_a_function_can_be_named_as_the_fallback(db, tmp_path):
    approved("softmax", "torch", range_={"axis": "rows", "lo": 1, "hi": 2})
    made = library.export("package", None, fallbacks={"softmax": "json:dumps"})
    wheel = tmp_path / made.filename
    wheel.write_bytes(made.data)
    told = environment(tmp_path, wheel).run("""
import json, torch, approved_kernels as k
try:
    k.softmax(torch.randn(64, 64))
except TypeError as error:
    print(json.dumps(str(error)))
""")
    assert "not JSON serializable" in told


def test_the_archive_installs_by_pip_from_its_pyproject(db, tmp_path):
    approved("rmsnorm")
    made = library.export("archive", None)
    path = tmp_path / made.filename
    path.write_bytes(made.data)
    line = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path, path]
    subprocess.run(line, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    told = environment(tmp_path, wheel).run("""
import json, torch, approved_kernels as k
print(json.dumps(k.rmsnorm.explain(torch.randn(8, 64), torch.randn(64))))
""")
    assert told.startswith("kernel ")
