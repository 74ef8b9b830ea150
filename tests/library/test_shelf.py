from __future__ import annotations

import io
import json
import subprocess
import zipfile

import pytest
from django.core.management import CommandError, call_command

from campaigns import actions, archive, library
from campaigns.models import Attempt, Flag, KernelExport
from tests.archive import samples

from .conftest import approved

pytestmark = pytest.mark.django_db


def in_force():
    return [k for k in library.kernels() if k.in_force()]


def test_an_approval_puts_a_kernel_on_the_shelf_once():
    review = approved("rmsnorm")
    library.kernels()
    (kernel,) = library.kernels()
    assert (kernel.review, kernel.operator, kernel.hardware) == (review, "rmsnorm", "cpu")
    assert kernel.in_force()


def test_a_later_rejection_takes_it_off():
    review = approved("rmsnorm")
    actions.reject(review.attempt, samples.person(), seen=1, kind="fragile", reason="x")
    (kernel,) = library.kernels()
    assert kernel.why_not() == "a later decision: rejected"


def test_of_two_approvals_of_one_attempt_the_later_holds():
    review = approved("rmsnorm")
    later = samples.approve(review.attempt, range_={"axis": "rows", "lo": 1, "hi": 9})
    assert [k.review for k in in_force()] == [later]


def test_what_was_changed_after_it_was_signed_is_off():
    review = approved("rmsnorm")
    Attempt.objects.filter(pk=review.attempt_id).update(files={"kernel.cpp": "int x;"})
    assert in_force() == []
    assert "stale" in library.kernels()[0].why_not()


def test_a_blocking_flag_that_is_raised_later_takes_it_off():
    review = approved("rmsnorm")
    Flag.objects.create(attempt=review.attempt, rule="decoy", severity="block", evidence="x")
    assert in_force() == []


def test_approvals_of_an_imported_campaign_are_not_on_it():
    rich = samples.rich()
    file = io.BytesIO()
    archive.export(rich, file)
    rich.delete()
    archive.restore(file, "x.zip", None)
    assert library.kernels() == []


def test_withdrawing_marks_what_was_exported():
    approved("rmsnorm")
    library.export("package", None)
    (kernel,) = library.kernels()
    (export,) = KernelExport.objects.all()
    assert export.no_longer_good() == []
    library.withdraw(kernel, samples.person(), "wrong for NaN")
    assert export.no_longer_good() == [kernel]
    assert kernel.why_not() == "withdrawn: wrong for NaN"
    with pytest.raises(actions.ActionError, match="withdrawn before"):
        library.withdraw(kernel, samples.person(), "again")


def test_nothing_in_force_is_not_exported():
    with pytest.raises(library.ExportError, match="Approve one in the review queue first"):
        library.export("package", None)


@pytest.mark.parametrize(("options", "why"), [
    ({"name": "os.path"}, "no package's name"),
    ({"name": "class"}, "no package's name"),
    ({"operators": ["softmax"]}, "No approved kernel of softmax"),
    ({"fallbacks": {"softmax": "a:b"}}, "no kernel of that operator"),
    ({"fallbacks": {"rmsnorm": "flashinfer"}}, "has no baseline 'flashinfer': there are eager, compile"),
    ({"fallbacks": {"rmsnorm": "a:b c"}}, "package.module:function"),
])  # fmt: skip
def test_a_wish_that_cannot_be_met_is_refused(options, why):
    approved("rmsnorm")
    with pytest.raises(library.ExportError, match=why):
        library.export("package", None, **options)
    assert not KernelExport.objects.exists()


@pytest.mark.parametrize("prefix", ["../x", "a/../b", "/etc/..", "a b", "a\nb"])
def test_a_patch_stays_in_the_repository(prefix):
    approved("rmsnorm")
    with pytest.raises(library.ExportError, match="plain relative path"):
        library.export("patch", None, prefix=prefix)


@pytest.mark.parametrize("path", ["../kernel.cpp", "/etc/kernel.cpp", "a\nb.cpp", 'a"b.cpp'])
def test_a_source_with_a_hostile_name_is_not_exported(path):
    from campaigns.harness.candidate import CandidateError, CandidateSource

    made = samples.campaign("rmsnorm")
    source = CandidateSource(backend="cpp", files={path: "int x;"})
    samples.approve(samples.judged(made, source, number=1))
    with pytest.raises((library.ExportError, CandidateError), match=r"path|file name"):
        library.export("package", None)


def test_text_from_outside_stays_text_in_the_generated_module():
    review = approved("rmsnorm")
    campaign = review.attempt.campaign
    toml = campaign.problem_files["problem.toml"].replace('title = "RMSNorm"', 'title = \'x""" + boom() + """\\\'')
    assert toml != campaign.problem_files["problem.toml"]
    campaign.problem_files["problem.toml"] = toml
    campaign.save()
    made = library.export("archive", None)
    with zipfile.ZipFile(io.BytesIO(made.data)) as packed:
        text = packed.read("approved_kernels/approved_kernels/rmsnorm.py").decode()
    import ast

    calls = [n.func.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    assert "boom" not in calls


@pytest.mark.parametrize("form", ["package", "archive", "patch"])
def test_the_same_kernels_give_the_same_bytes(form):
    approved("rmsnorm")
    approved("softmax", "torch")
    assert library.export(form, None).data == library.export(form, None).data


def test_the_patch_applies_with_git_am_and_says_where_the_kernels_are_from(tmp_path):
    review = approved("rmsnorm")
    review.attempt.idea = review.attempt.campaign.ideas.create(
        text="Read once.\n---\nFrom: mallory\n\ndiff --git a/x b/x"
    )
    review.attempt.save()
    made = library.export("patch", None, prefix="third_party/kernels")
    (tmp_path / "a.patch").write_bytes(made.data)

    def git(*words):
        line = ["git", "-c", "user.name=x", "-c", "user.email=x@y", *words]
        return subprocess.run(line, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("am", "a.patch")
    message = git("log", "-1", "--format=%an%n%B")
    assert message.startswith("Autoresearch Web\nAdd 1 approved kernels")
    assert f"signed: {review.sha256}" in message
    assert "approved by: grace" in message
    assert "idea: Read once. --- From: mallory diff --git" in message
    archived = library.export("archive", None)
    with zipfile.ZipFile(io.BytesIO(archived.data)) as packed:
        wanted = {n.removeprefix("approved_kernels/"): packed.read(n) for n in packed.namelist()}
    folder = tmp_path / "third_party" / "kernels"
    assert {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()} == wanted


def test_the_command_writes_the_file_and_tells_its_hash(tmp_path, capsys):
    approved("rmsnorm")
    call_command("export_kernels", tmp_path / "new", "--fallback", "rmsnorm=compile", "--json")
    told = json.loads(capsys.readouterr().out)
    assert (tmp_path / "new" / told["file"].rpartition("/")[2]).is_file()
    assert KernelExport.objects.get().sha256 == told["sha256"]
    with pytest.raises(CommandError, match="OPERATOR=WHAT"):
        call_command("export_kernels", tmp_path, "--fallback", "rmsnorm")
