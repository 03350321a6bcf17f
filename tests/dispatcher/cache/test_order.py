"""Who is next in an order that changes."""

from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.cache.order import Order

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcd"), st.integers(-3, 3)),
        st.tuples(st.just("drop"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.just("put_off"), st.sampled_from("abcd"), st.integers(0, 20)),
        st.tuples(st.just("pass"), st.just(""), st.integers(0, 9)),
    ),
    max_size=40,
)


@given(_STEPS)
def test_it_is_who_has_the_lowest_rank_and_is_not_put_off(steps: list[tuple[str, str, int]]) -> None:
    order, now_ms = Order(), 0
    ranks: dict[str, int] = {}
    until: dict[str, int] = {}
    for step, uid, number in steps:
        if step == "put":
            order.put(uid, number)
            ranks[uid] = number
            until.pop(uid, None)
        elif step == "drop":
            order.put(uid, None)
            ranks.pop(uid, None)
            until.pop(uid, None)
        elif step == "put_off":
            order.put_off(uid, now_ms + number)
            if uid in ranks:
                until.setdefault(uid, now_ms + number)
        else:
            now_ms += number
        for most in (None, 0):
            left = [(rank, one) for one, rank in ranks.items() if until.get(one, 0) <= now_ms]
            left = [one for one in left if most is None or one[0] <= most]
            assert order.first(now_ms, most) == (min(left)[1] if left else None)
        until = {one: ms for one, ms in until.items() if ms > now_ms}
        assert (len(order), order.next_look_ms()) == (len(ranks), min(until.values(), default=None))
        assert all((uid in order) == (uid in ranks) for uid in "abcd")
