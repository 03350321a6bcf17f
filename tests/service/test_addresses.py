import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.service.addresses import AddressError, BindAddress, parse_bind_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (":8080", "", 8080),
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        ("localhost:0", "localhost", 0),
        ("[::1]:10351", "::1", 10351),
        ("[::]:1", "::", 1),
        ("0.0.0.0:65535", "0.0.0.0", 65535),
    ],
)
def test_addresses_are_read_as_go_reads_them(text: str, host: str, port: int) -> None:
    assert parse_bind_address(text) == BindAddress(host, port)


def test_zero_switches_a_listener_off() -> None:
    assert parse_bind_address("0") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8080",
        ":",
        ":http",
        ":65536",
        ":-1",
        ":+1",
        ": 80",
        ":\u0668\u0660",
        ":" + "9" * 5000,
        "::1:8080",
        "[::1]",
        "[::1",
        "[localhost]:80",
        "[]:80",
        "http://x:80",
        "a b:80",
        "a\n:80",
    ],
)
def test_anything_else_is_refused_with_the_text_and_the_form(text: str) -> None:
    with pytest.raises(AddressError, match="expected") as caught:
        parse_bind_address(text)
    assert repr(text) in str(caught.value)


@given(st.sampled_from(["", "127.0.0.1", "node-1.example", "::1", "fe80::1"]), st.integers(0, 65535))
def test_what_is_shown_reads_back(host: str, port: int) -> None:
    address = BindAddress(host, port)
    assert parse_bind_address(str(address)) == address
