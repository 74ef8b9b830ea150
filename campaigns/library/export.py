"""Hand kernels out, and remember what was handed out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from campaigns.models import Kernel, KernelExport

from . import forms, package, shelf
from .package import ExportError

FORMS = ("package", "archive", "patch")


@dataclass(frozen=True)
class Export:
    """A file to hand out. ``note`` is the row that remembers it."""

    filename: str
    data: bytes
    note: KernelExport


def export(
    form: str,
    person: User | None,
    *,
    operators: Sequence[str] | None = None,
    name: str = "approved_kernels",
    fallbacks: Mapping[str, str] | None = None,
    prefix: str = "",
) -> Export:
    """Everything in force, or the operators named, in one of ``FORMS``. Raises ``ExportError``."""
    if form not in FORMS:
        raise ExportError(f"There is no form {form!r}: {', '.join(FORMS)}.")
    chosen = [k for k in shelf.kernels(list(operators) if operators is not None else None) if k.in_force()]
    if missing := sorted(set(operators or []) - {k.operator for k in chosen}):
        raise ExportError(f"No approved kernel of {', '.join(missing)} is in force.")
    if not chosen:
        raise ExportError("No approved kernel is in force. Approve one in the review queue first.")
    files = package.files_of(name, chosen, fallbacks or {})
    filename, data = _made(form, name, files, chosen, prefix)
    with transaction.atomic():
        sha256 = hashlib.sha256(data).hexdigest()
        note = KernelExport.objects.create(form=form, name=name, sha256=sha256, by=person)
        note.kernels.set(chosen)
    return Export(filename, data, note)


def _made(form: str, name: str, files: package.Files, kernels: list[Kernel], prefix: str) -> tuple[str, bytes]:
    version = package.version_of(files)
    if form == "package":
        return forms.wheel_name(name, files), forms.wheel(name, files)
    if form == "archive":
        return f"{name}-{version}.zip", forms.archive(name, files)
    folder = prefix.strip("/")
    if folder and not all(re.fullmatch(r"\w[\w.-]*", part, re.ASCII) for part in folder.split("/")):
        raise ExportError(
            f"{prefix!r}: the folder in your repository is a plain relative path, such as third_party/kernels."
        )
    return f"{name}-{version}.patch", forms.patch(name, files, kernels, f"{folder}/" if folder else "")
