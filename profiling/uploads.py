"""Take in an uploaded file: size, hash, duplicates, place on disk."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.db import IntegrityError, transaction

from profiling import importing
from profiling.events import clean
from profiling.models import Profile
from profiling.words import size

CHUNK_BYTES = 1 << 20


class NotTaken(Exception):
    """The upload cannot be taken; the message says why and what to do."""


def display_name(raw: str) -> str:
    """A file's own name without its path, for people to read. It is never used as a path."""
    return clean(PurePosixPath(raw.replace("\\", "/")).name).strip()[:200] or "profile"


def take(upload: UploadedFile, user: Any) -> tuple[Profile, bool]:
    """The profile of an upload, and whether it is new. The same bytes lead to the profile that is there already.

    :raises NotTaken: too large, or no room.
    """
    if (upload.size or 0) > settings.PROFILE_MAX_BYTES:
        limit = size(settings.PROFILE_MAX_BYTES)
        raise NotTaken(f"The file has {size(upload.size or 0)}, the limit is {limit}: capture a shorter window.")
    sha256 = digest(upload.chunks(CHUNK_BYTES))
    profile = Profile(
        name=display_name(upload.name or ""), sha256=sha256, size_bytes=upload.size or 0, uploaded_by=user
    )
    try:
        with transaction.atomic():
            profile.save()
    except IntegrityError:
        return again(Profile.objects.get(sha256=sha256), upload), False
    try:
        store(upload, profile.upload_path)
    except OSError as error:
        profile.discard()
        raise NotTaken(f"The file could not be stored ({error.strerror}): make room in the data folder.") from error
    importing.enqueue(profile)
    return profile, True


def again(known: Profile, upload: UploadedFile) -> Profile:
    """The same file once more: of use only where the first one did not make it into a store of this version."""
    if known.is_ready() and known.store_path.is_dir():
        return known
    if not known.has_upload():
        store(upload, known.upload_path)
    if known.is_ready():
        Profile.objects.filter(pk=known.pk).update(state="failed")
    if known.ask_again():
        importing.enqueue(known)
    return known


def digest(chunks: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for chunk in chunks:
        found.update(chunk)
    return found.hexdigest()


def file_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def store(upload: UploadedFile, path: Path) -> None:
    """Move or copy the upload to its place, readable by this account only, complete or not there."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_suffix(f".{secrets.token_hex(6)}.part")  # the same bytes may come in twice at once
    try:
        if isinstance(upload, TemporaryUploadedFile):
            if upload.file:
                upload.file.flush()
            try:
                os.link(upload.temporary_file_path(), part)
            except OSError:
                shutil.copyfile(upload.temporary_file_path(), part)
        else:
            with part.open("wb") as file:
                file.writelines(upload.chunks(CHUNK_BYTES))
        part.chmod(0o600)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
