"""Who did it. A name in an archive is not a person of this installation, whatever it is: it gets an account of its own
that is called ``NAME@imported``, has no password and can never sign in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser

from .errors import ArchiveError

SUFFIX = "@imported"
MAX_NAME = 140
MAX_NAMES = 1000


def name_of(person: AbstractBaseUser | None, *, imported: bool) -> str | None:
    """How the archive calls a person. An imported campaign's people get their own names back."""
    if person is None:
        return None
    name: str = person.get_username()
    return name.removesuffix(SUFFIX) if imported else name


class People:
    """The accounts for the names of one archive, made when they are first asked for."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def get(self, name: Any, where: str) -> Any:
        if name is None:
            return None
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise ArchiveError(f"{where}: a person's name is 1 to {MAX_NAME} printable characters.")
        if name not in self._found:
            if len(self._found) >= MAX_NAMES:
                raise ArchiveError(f"{where}: more than {MAX_NAMES:,} people.")
            self._found[name] = self._account(name, where)
        return self._found[name]

    def _account(self, name: str, where: str) -> Any:
        users = get_user_model()._default_manager
        person, made = users.get_or_create(username=name + SUFFIX, defaults={"is_active": False})
        if not made and person.is_active:
            raise ArchiveError(
                f"{where}: {name + SUFFIX} is somebody's account here, and must not speak for the archive."
            )
        if made:
            person.set_unusable_password()
            person.save()
        return person
