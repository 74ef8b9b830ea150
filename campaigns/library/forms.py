"""The forms in which a package is handed out: a wheel, a zip of its sources, a patch. Same files, same bytes."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from datetime import UTC, datetime
from email.header import Header
from email.utils import format_datetime

from campaigns.models import Kernel

from .package import Files, told, version_of

WHEEL = "Wheel-Version: 1.0\nGenerator: autoresearch-web\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
EPOCH = (1980, 1, 1, 0, 0, 0)


def zipped(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, text in files.items():
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.create_system, entry.external_attr, entry.compress_type = 3, 0o100644 << 16, zipfile.ZIP_DEFLATED
            packed.writestr(entry, text.encode("utf-8", "surrogatepass"), compresslevel=6)
    return out.getvalue()


def archive(name: str, files: Files) -> bytes:
    """The source tree in one folder: ``pip install`` takes it, and so does a person who wants to read."""
    return zipped({f"{name}/{path}": text for path, text in files.items()})


def wheel_name(name: str, files: Files) -> str:
    return f"{name}-{version_of(files)}-py3-none-any.whl"


def wheel(name: str, files: Files) -> bytes:
    """A wheel by hand, so that it installs without a network and without a build tool. PEP 427."""
    info = f"{name}-{version_of(files)}.dist-info"
    content = {path: text for path, text in files.items() if path.startswith(f"{name}/")}
    content[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version_of(files)}\n"
        f"Requires-Python: >=3.10\nRequires-Dist: torch\nDescription-Content-Type: text/markdown\n\n{files['README.md']}"
    )
    content[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: autoresearch-web\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    lines = [f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in content.items()]
    content[f"{info}/RECORD"] = "".join(lines) + f"{info}/RECORD,,\n"
    return zipped(content)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def patch(name: str, files: Files, kernels: list[Kernel], prefix: str) -> bytes:
    """A patch for ``git am`` that adds the package under ``prefix``; the message says where each kernel is from."""
    newest = max((k.review.created_at for k in kernels), default=datetime.now(UTC))
    subject = f"Add {len(kernels)} approved kernels as {name} {version_of(files)}"
    head = [
        f"From {hashlib.sha1(version_of(files).encode()).hexdigest()} Mon Sep 17 00:00:00 2001",
        "From: Autoresearch Web <autoresearch-web@localhost>",
        f"Date: {format_datetime(newest)}",
        f"Subject: [PATCH] {Header(subject, 'utf-8', maxlinelen=200).encode()}",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Transfer-Encoding: 8bit",
        "",
    ]
    message = [line for kernel in kernels for line in _provenance(kernel)]
    body = "".join(_added(f"{prefix}{path}", text) for path, text in files.items())
    return ("\n".join([*head, *message, "---", ""]) + body + "-- \nautoresearch-web\n").encode("utf-8", "surrogatepass")


def _provenance(kernel: Kernel) -> list[str]:
    """Free text is indented, so that no line of it can look like a part of the mail."""
    about = told(kernel)
    lo, value, hi = about["speedup"]
    speed = f"{value:.3f}x ({lo:.3f} to {hi:.3f})" if None not in (lo, value, hi) else "not measured"
    lines = [f"{kernel.operator}, kernel {about['kernel']} ({kernel.backend} on {_one_line(kernel.hardware)})"]
    told_lines = {
        "idea": f"{about['idea']} ({about['idea_by']})" if about["idea"] else "none",
        "what": about["what"],
        "campaign": f"{about['campaign']}, attempt {about['attempt']}",
        "approved by": f"{about['approved_by']} at {about['approved_at']}",
        "range": str(about["range"] or "all that was tested"),
        "speed-up": f"{speed} over {about['baseline']}",
        "signed": about["signed_sha256"],
    }
    return [*lines, *(f"  {label}: {_one_line(text)}" for label, text in told_lines.items()), ""]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _added(path: str, text: str) -> str:
    """A file as git shows a new one."""
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n"
    if not text:
        return head + "index 0000000..e69de29\n"
    lines = text.split("\n")
    ends = lines[-1] == ""
    lines = lines[:-1] if ends else lines
    body = "".join(f"+{line}\n" for line in lines) + ("" if ends else "\\ No newline at end of file\n")
    return f"{head}--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{body}"
