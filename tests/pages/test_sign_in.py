from __future__ import annotations

import pytest
from django.test import Client
from django.utils.http import urlencode

pytestmark = pytest.mark.django_db


def test_after_signing_in_one_comes_back_to_the_whole_address():
    answer = Client().get("/profiles/?page=2&q=a%26b")

    assert answer["Location"] == "/login?" + urlencode({"next": "/profiles/?page=2&q=a%26b"}).replace("%2F", "/")


def test_an_address_of_any_length_leads_to_signing_in():
    assert Client().get("/" + "a" * 20_000)["Location"] == "/login"
