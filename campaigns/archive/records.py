"""Rows as plain data and back, by the model's own fields: a field that is added to a model is in the next archive."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.dateparse import parse_datetime

from campaigns.models import Attempt, AttemptProfile, Campaign, Event, Flag, Idea, Measurement, Review, Steering

from .errors import ArchiveError

LEFT_OUT: dict[type[models.Model], set[str]] = {
    Campaign: {"id", "imported_from"},
    Idea: {"id"},
    Steering: {"id"},
    Attempt: {"id", "claim", "heartbeat_at", "ticket"},  # who works on it at the moment, not what came of it
    AttemptProfile: {"id", "created_at", "asked_at", "tries"},  # when and how often its host was asked
    Measurement: {"id"},
    Flag: {"id"},
    Review: {"id"},
    Event: {"id"},
}
APART: dict[type[models.Model], set[str]] = {
    Campaign: {"problem_files", "start_files"},
    Attempt: {"files", "report"},
    AttemptProfile: {"trace_sha256"},
}
"""Fields that are parts of their own, readable with any unzip."""


class Range(msgspec.Struct, forbid_unknown_fields=True):
    axis: str
    lo: int
    hi: int


SHAPES: dict[tuple[type[models.Model], str], Any] = {
    (Campaign, "agent_options"): dict[str, Any],
    (Attempt, "parameters"): dict[str, Any],
    (Attempt, "usage"): dict[str, Any],
    (Attempt, "ranges"): list[Any],
    (Measurement, "axes"): dict[str, int],
    (Flag, "data"): dict[str, Any],
    (Review, "range"): Range | None,
    (Event, "data"): dict[str, Any],
}
"""What pages take for granted of a JSON field."""


def fields(model: type[models.Model]) -> list[models.Field[Any, Any]]:
    """The fields that a record holds: all plain ones but those left out or apart."""
    without = LEFT_OUT[model] | APART.get(model, set())
    return [f for f in model._meta.concrete_fields if not f.is_relation and f.name not in without]


def to_record(row: models.Model) -> dict[str, Any]:
    return {f.name: _plain(getattr(row, f.attname)) for f in fields(type(row))}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def from_record(model: type[models.Model], record: Any, where: str, also: set[str]) -> dict[str, Any]:
    """Values for the fields. What an older archive lacks takes the model's default; what nobody knows is refused.

    ``also`` names the record's keys that are no plain fields.
    """
    if not isinstance(record, dict):
        raise ArchiveError(f"{where}: not a record.")
    known = {f.name: f for f in fields(model)}
    if unknown := sorted(set(record) - set(known) - also):
        raise ArchiveError(f"{where}: {unknown[0]!r} is no field that this version knows.")
    return {name: _checked(known[name], record[name], f"{where}: {name}") for name in known if name in record}


def _checked(field: models.Field[Any, Any], value: Any, where: str) -> Any:
    if value is None:
        if field.null:
            return None
        raise ArchiveError(f"{where}: must not be null.")
    shape = SHAPES.get((field.model, field.name))
    if shape is not None:
        return _converted(value, shape, where)
    if not _is_kind(field, value):
        raise ArchiveError(f"{where}: a {type(value).__name__} where a {field.get_internal_type()} belongs.")
    if isinstance(field, models.DateTimeField):
        return _moment(value, where)
    if field.choices and value != "" and value not in dict(field.flatchoices):
        raise ArchiveError(f"{where}: {value[:50]!r} is none of {', '.join(map(str, dict(field.flatchoices)))}.")
    try:
        field.run_validators(value)
    except ValidationError as error:
        raise ArchiveError(f"{where}: {' '.join(error.messages)}") from None
    return value


def _is_kind(field: models.Field[Any, Any], value: Any) -> bool:
    if isinstance(field, models.JSONField):
        return True
    if isinstance(field, models.BooleanField):
        return isinstance(value, bool)
    if isinstance(field, models.IntegerField):
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(field, models.FloatField):
        return isinstance(value, float) and math.isfinite(value)
    return isinstance(value, str) and "\0" not in value


def _moment(value: str, where: str) -> datetime:
    try:
        moment = parse_datetime(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ArchiveError(f"{where}: {value[:50]!r} is no time with a zone.")
    return moment


def _converted(value: Any, shape: Any, where: str) -> Any:
    try:
        return msgspec.to_builtins(msgspec.convert(value, shape))
    except (msgspec.ValidationError, OverflowError) as error:
        raise ArchiveError(f"{where}: {error}") from None


def insert(model: type[models.Model], rows: Iterable[dict[str, Any]]) -> list[Any]:
    """Insert rows, in order. Times that the model sets by itself are put back to what the records say."""
    values = list(rows)
    made = model._default_manager.bulk_create([model(**v) for v in values], batch_size=500)
    own = [
        f.name
        for f in model._meta.concrete_fields
        if getattr(f, "auto_now_add", False) or getattr(f, "auto_now", False)
    ]
    if own:
        for row, said in zip(made, values, strict=True):
            for name in own:
                setattr(row, name, said.get(name, getattr(row, name)))
        model._default_manager.bulk_update(made, own, batch_size=200)
    return list(made)
